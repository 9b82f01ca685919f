//! The authorization server and the server it guards, as one process on Node.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::support::installed;

/// How long it may take to say something that it is bound to say.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Desk {
    pub resource: String,
    pub issuer: String,
    child: Child,
    said: Arc<(Mutex<Vec<String>>, Condvar)>,
}

impl Desk {
    pub fn open() -> Self {
        let mut child = Command::new("node")
            .arg(installed("servers/oidc.mjs"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let said = Arc::<(Mutex<Vec<String>>, Condvar)>::default();
        let (output, heard) = (BufReader::new(child.stdout.take().unwrap()), Arc::clone(&said));
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                heard.0.lock().unwrap().push(line);
                heard.1.notify_all();
            }
        });
        let mut desk = Self { resource: String::new(), issuer: String::new(), child, said };
        let place = desk.has_said("listening ");
        let mut words = place.split(' ').skip(1).map(str::to_owned);
        (desk.resource, desk.issuer) = (words.next().unwrap(), words.next().unwrap());
        desk
    }

    /// Waits until it has said something that begins like this.
    pub fn has_said(&self, beginning: &str) -> String {
        let found = |said: &Vec<String>| said.iter().find(|line| line.starts_with(beginning)).cloned();
        let (said, news) = &*self.said;
        let said = said.lock().unwrap();
        let (said, _) = news.wait_timeout_while(said, PATIENCE, |said| found(said).is_none()).unwrap();
        found(&said).unwrap_or_else(|| panic!("never said `{beginning}`: {said:?}"))
    }

    /// Ends every access token that was ever shown.
    pub fn expire(&mut self) {
        let before = self.count("expired");
        writeln!(self.child.stdin.as_mut().unwrap(), "expire").unwrap();
        let (said, news) = &*self.said;
        let count = |said: &mut Vec<String>| said.iter().filter(|line| *line == "expired").count();
        drop(news.wait_timeout_while(said.lock().unwrap(), PATIENCE, |said| count(said) == before).unwrap());
        assert!(self.count("expired") > before);
    }

    /// How often it has said so.
    pub fn count(&self, beginning: &str) -> usize {
        self.said.0.lock().unwrap().iter().filter(|line| line.starts_with(beginning)).count()
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
