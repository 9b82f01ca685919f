//! Recognises a guard process before `main`, and checks that this program can be executed again as one.
//!
//! `main` is too late: `#[tokio::main]` has started its threads by then, and a test harness has its own `main`. So the
//! check is a constructor, which the loader runs while the process has one thread. In any other process it costs one
//! comparison of `argv[0]`.
//!
//! A program that is executed again without such a constructor would run its own `main` a second time. Therefore the
//! launcher requires proof first: the constructor has run in this process, and its code is in the file that
//! `/proc/self/exe` executes.

#![expect(unsafe_code, reason = "a constructor and the C library's copy of argv[0] have no safe interface")]

use std::ffi::{CStr, c_char};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::guard_main;

/// Process name of a guard.
pub(super) const GUARD_NAME: &str = "wharf-guard";
/// Its only argument. Without it, a program that happens to have the name is not a guard.
pub(super) const GUARD_ARGUMENT: &str = "--control-on-stdin";
/// The command line of a guard, as `/proc` shows it.
const GUARD_COMMAND_LINE: &[u8] = b"wharf-guard\0--control-on-stdin\0";

/// The file of the running program. The link also leads to it after the file has been replaced.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Set by the constructor.
static CONSTRUCTOR_HAS_RUN: AtomicBool = AtomicBool::new(false);

/// The loader calls this in every process that contains this crate. 101 is the first priority that is not reserved; the
/// standard library has 99.
#[used]
// SAFETY: the section holds pointers to functions of this type. The loader calls them once, on the main thread.
#[unsafe(link_section = ".init_array.00101")]
static ON_PROCESS_START: extern "C" fn() = on_process_start;

unsafe extern "C" {
    /// `argv[0]`, which both the GNU C library and musl set before they run constructors.
    static program_invocation_name: *const c_char;
}

/// Runs the guard if this process was started as one. Otherwise it only records that it has run.
///
/// The standard library does not promise to work before `main`. A guard uses files, sockets, memory and processes, which
/// need none of its initialisation.
extern "C" fn on_process_start() {
    if has_guard_name() && has_guard_command_line() && !is_privileged() {
        guard_main::run();
    }
    CONSTRUCTOR_HAS_RUN.store(true, Ordering::Relaxed);
}

fn has_guard_name() -> bool {
    // SAFETY: the C library initialises the variable before constructors run. It is null or a C string that lives as
    // long as the process, and at this point there is one thread.
    unsafe {
        let name = program_invocation_name;
        !name.is_null() && CStr::from_ptr(name).to_bytes() == GUARD_NAME.as_bytes()
    }
}

/// Without `/proc` the name decides: the program's own `main` must not run in a guard's place.
fn has_guard_command_line() -> bool {
    std::fs::read("/proc/self/cmdline").map_or(true, |line| line == GUARD_COMMAND_LINE)
}

/// Reports whether this process has privileges that its caller lacks (set-user-ID, file capabilities). The caller
/// chooses `argv[0]` and the start request, so such a guard would run any program with these privileges.
fn is_privileged() -> bool {
    // SAFETY: getauxval takes a number and reads memory that the kernel has prepared for this process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Returns the path that executes this program again as a guard.
///
/// # Errors
///
/// Returns an error with the next step if another program would run instead, for instance the interpreter that has
/// loaded this code as an extension module.
pub(super) fn own_program() -> io::Result<PathBuf> {
    static IS_IN_PROGRAM: OnceLock<bool> = OnceLock::new();
    match CONSTRUCTOR_HAS_RUN.load(Ordering::Relaxed) && *IS_IN_PROGRAM.get_or_init(is_in_program) {
        true => Ok(PathBuf::from(OWN_PROGRAM)),
        false => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this program cannot run as the guard of its servers, because it loads Wharf from another file; \
             set the guard to `GuardProgram::At` with the path of `wharf`, or to `GuardProgram::None` to start \
             servers without a guard",
        )),
    }
}

/// Reports whether this code is mapped from the program's own file. Without evidence it is.
fn is_in_program() -> bool {
    let (Ok(program), Ok(maps)) = (std::fs::read_link(OWN_PROGRAM), std::fs::read("/proc/self/maps")) else {
        return true;
    };
    let address = on_process_start as extern "C" fn() as usize;
    is_mapped_from(&program, &String::from_utf8_lossy(&maps), address)
}

/// Reports whether the mapping at an address is of this file, or of no file at all.
fn is_mapped_from(program: &Path, maps: &str, address: usize) -> bool {
    // The kernel escapes line feeds in this list only.
    let program = program.to_string_lossy().replace('\n', "\\012");
    let file = maps.lines().find_map(|line| {
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let range = usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
        range.contains(&address).then(|| fields.nth(4).unwrap_or_default().trim_start())
    });
    file.is_none_or(|file| file.is_empty() || file == program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_harness_can_run_as_guard() {
        assert_eq!(own_program().unwrap(), Path::new(OWN_PROGRAM));
    }

    #[test]
    fn command_line_has_name_and_argument() {
        assert_eq!(GUARD_COMMAND_LINE, format!("{GUARD_NAME}\0{GUARD_ARGUMENT}\0").as_bytes());
    }

    #[test]
    fn code_of_another_file_is_not_the_program() {
        let maps = "1000-2000 r-xp 00000000 08:01 42      /usr/bin/python3\n\
                    2000-3000 r-xp 00000000 08:01 43      /a dir/module.so (deleted)\n\
                    3000-4000 r-xp 00000000 00:00 0 \n";
        for (program, address, expected) in [
            ("/usr/bin/python3", 0x1000, true),
            ("/usr/bin/python3", 0x2000, false),
            ("/usr/bin/python3", 0x3000, true),
            ("/usr/bin/python3", 0x4000, true),
            ("/a dir/module.so (deleted)", 0x2fff, true),
            ("/a dir/module.so", 0x2fff, false),
        ] {
            assert_eq!(is_mapped_from(Path::new(program), maps, address), expected, "{program} {address:x}");
        }
    }
}
