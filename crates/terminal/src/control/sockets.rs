//! Where sockets lie, and which of them somebody still listens at.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use wharf_spec::Surroundings;

/// How the name of a socket ends; before it stands the number of its process.
const ENDING: &str = "sock";

/// A socket of our own. Dropped, its name is gone.
pub struct Socket(PathBuf);

/// The directory for sockets: that of this login where there is one of our own, else one beside what is kept.
pub fn directory(around: &Surroundings, state: Option<&Path>) -> Option<PathBuf> {
    let runtime = around.var("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime =
        runtime.filter(|path| path.is_absolute() && std::fs::metadata(path).is_ok_and(|found| is_own(&found, 0o022)));
    runtime.map(|path| path.join("wharf")).or_else(|| Some(state?.join("run")))
}

/// Whether it is a directory of this user's, on which nobody else has any of these permissions.
fn is_own(found: &std::fs::Metadata, permissions: u32) -> bool {
    found.is_dir() && found.uid() == own_user() && found.mode() & permissions == 0
}

pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

impl Socket {
    /// Listens under the number of this process, and tidies up after those that have ended without doing so.
    pub fn bind(directory: &Path, pid: u32) -> io::Result<(Self, UnixListener)> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        check_private(directory)?;
        live(directory);
        let path = directory.join(format!("{pid}.{ENDING}"));
        if path.exists() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another process of this number listens"));
        }
        // Under its own name it is found only once somebody listens: before, it would be taken for one that was left.
        let begun = directory.join(format!(".{pid}.new"));
        let _ = std::fs::remove_file(&begun);
        let listener = UnixListener::bind(&begun)?;
        std::fs::set_permissions(&begun, Permissions::from_mode(0o600))?;
        std::fs::rename(&begun, &path)?;
        listener.set_nonblocking(true)?;
        Ok((Self(path), listener))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The sockets at which somebody listens, the newest first. Those at which nobody does any more are removed. Blocks, for
/// no longer than the file system does.
pub fn live(directory: &Path) -> Vec<PathBuf> {
    if check_private(directory).is_err() {
        return Vec::new();
    }
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let sockets = files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|ending| ending == ENDING));
    let mut found: Vec<(SystemTime, PathBuf)> = sockets
        .filter(|path| is_live(path))
        .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

fn is_live(path: &Path) -> bool {
    match dialled(path) {
        // Somebody listens, and has more to do than it can take.
        Ok(()) | Err(Errno::AGAIN) => true,
        Err(Errno::CONNREFUSED) => {
            let _ = std::fs::remove_file(path);
            false
        }
        Err(_) => false,
    }
}

/// Dials without waiting for anybody.
fn dialled(path: &Path) -> Result<(), Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)
}

fn check_private(directory: &Path) -> io::Result<()> {
    match is_own(&std::fs::symlink_metadata(directory)?, 0o077) {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::PermissionDenied, "others can get at the directory of sockets")),
    }
}
