//! A new home and a project in it, and commands run there.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use wharf_testkit::pty::{Layout, Terminal};
use wharf_testkit::test_home::TestHome;

pub const WHARF: &str = env!("CARGO_BIN_EXE_wharf");

/// Where the pages say that the program lies.
const INSTALLED: &str = "~/.cargo/bin";
/// The folder with `wharf` in it.
const PROGRAMS: &str = "home/.cargo/bin";
/// The directory that commands run in.
const PROJECT: &str = "home/harbour";
/// Where programs are looked for besides.
const SYSTEM: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];
/// What the example servers are run by.
const LANGUAGES: [&str; 2] = ["node", "python3"];
/// How long a command may take, in seconds.
const DEADLINE: &str = "60";

/// A home with a project in it, and `wharf` where the pages say it is installed.
pub struct Place(TestHome);

impl Place {
    pub fn new() -> Self {
        let home = TestHome::new();
        let (project, programs) = (home.path(PROJECT), home.path(PROGRAMS));
        for new in [&project, &programs] {
            fs::create_dir_all(new).unwrap();
        }
        symlink(WHARF, programs.join("wharf")).unwrap();
        for language in LANGUAGES.into_iter().filter(|language| !SYSTEM.iter().any(|folder| is_in(folder, language))) {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let found = std::env::split_paths(&path).find(|folder| is_in(folder, language));
            symlink(found.expect("the tests need Node and Python").join(language), programs.join(language)).unwrap();
        }
        symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples"), project.join("examples")).unwrap();
        Self(home)
    }

    /// Runs a command whose output goes to a pipe; gives the lines it printed and how it ended.
    pub fn in_pipe(&self, line: &str) -> Vec<String> {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut command = self.command(line);
        command.stdin(Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(writer);
        let mut child = command.spawn().unwrap();
        // It holds the writing end as well.
        drop(command);
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        let code = child.wait().unwrap().code();
        assert!(!bytes.contains(&0x1b), "{line} writes escapes into a pipe");
        self.told(&String::from_utf8_lossy(&bytes), code)
    }

    /// The same on a terminal, where somebody answers what is asked.
    pub fn on_terminal(&self, line: &str, typed: &[(&str, &str)]) -> Vec<String> {
        let layout = Layout { rows: 40, columns: 120, ..Layout::default() };
        let mut terminal = Terminal::start_with(&self.command(line), layout);
        for (words, answer) in typed {
            terminal.answer(words, answer);
        }
        let ended = terminal.end();
        self.told(&ended.text, ended.code)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--foreground", DEADLINE, "sh", "-c", line]).env_clear().current_dir(self.0.path(PROJECT));
        command.env("HOME", self.0.path("home")).env("TERM", "xterm").env("LANG", "C.UTF-8");
        command.env("PATH", format!("{}:{}", self.0.path(PROGRAMS).display(), SYSTEM.join(":")));
        command
    }

    /// Paths as the pages have them, and the exit code as a line.
    fn told(&self, printed: &str, code: Option<i32>) -> Vec<String> {
        let built = Path::new(WHARF).parent().unwrap().display().to_string();
        let printed = printed.replace(&built, INSTALLED).replace(&self.0.path("home").display().to_string(), "~");
        let mut lines: Vec<String> = printed.lines().map(|line| line.trim_end().to_owned()).collect();
        if code != Some(0) {
            lines.push(format!("[exit {}]", code.map_or_else(|| "by a signal".to_owned(), |code| code.to_string())));
        }
        lines
    }
}

fn is_in(folder: impl AsRef<Path>, program: &str) -> bool {
    folder.as_ref().join(program).is_file()
}
