//! Protection of a process's memory and environment from other processes of the same user.

use std::io;

use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};

/// Makes this process non-dumpable and limits its core files to 0 bytes.
///
/// Afterwards other processes of the same user can neither attach to it nor read its `/proc/<pid>/environ`, `mem`, `fd`
/// and `maps`, and a crash leaves no core file. Processes with `CAP_SYS_PTRACE`, which root usually has, still can.
///
/// The setting is process-wide, so the library never makes it in an embedder's process: a program that holds API keys
/// calls this early in `main`. A guard calls it for itself. Programs that this process executes are dumpable again and
/// inherit the core limit; its hard value is unchanged.
///
/// # Errors
///
/// Returns the system's error if the kernel or a sandbox refuses `prctl` or `setrlimit`.
pub fn protect_memory() -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), ..getrlimit(Resource::Core) })?;
    Ok(())
}
