//! Location of control sockets, and detection of stale ones.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use wharf_spec::Environment;

/// File extension of a socket. The file stem is the process id.
const SOCKET_EXTENSION: &str = "sock";

/// The socket file of this process, removed on drop.
pub struct SocketFile(PathBuf);

/// Returns the directory for sockets: `XDG_RUNTIME_DIR/wharf` if the runtime directory is owned by the user and not
/// writable by others, else `run` in the state directory.
pub fn socket_directory(environment: &Environment, state: Option<&Path>) -> Option<PathBuf> {
    let runtime = environment.var("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|path| {
        path.is_absolute() && std::fs::metadata(path).is_ok_and(|found| is_private_directory(&found, 0o022))
    });
    runtime.map(|path| path.join("wharf")).or_else(|| Some(state?.join("run")))
}

/// Reports whether the metadata is of a directory owned by this user without any of these permission bits.
fn is_private_directory(found: &std::fs::Metadata, permissions: u32) -> bool {
    found.is_dir() && found.uid() == effective_uid() && found.mode() & permissions == 0
}

pub fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

impl SocketFile {
    /// Binds a socket named after this process and removes stale ones.
    pub fn bind(directory: &Path, pid: u32) -> io::Result<(Self, UnixListener)> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        check_private(directory)?;
        live_sockets(directory);
        let path = directory.join(format!("{pid}.{SOCKET_EXTENSION}"));
        if path.exists() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "a socket with this process id is already in use"));
        }
        // Rename only after listening: a socket that refuses connections would be removed as stale.
        let begun = directory.join(format!(".{pid}.new"));
        let _ = std::fs::remove_file(&begun);
        let listener = UnixListener::bind(&begun)?;
        std::fs::set_permissions(&begun, Permissions::from_mode(0o600))?;
        std::fs::rename(&begun, &path)?;
        listener.set_nonblocking(true)?;
        Ok((Self(path), listener))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Returns the sockets with a listener, newest first, and removes stale ones. Blocks on the file system only.
pub fn live_sockets(directory: &Path) -> Vec<PathBuf> {
    if check_private(directory).is_err() {
        return Vec::new();
    }
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let sockets =
        files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|ending| ending == SOCKET_EXTENSION));
    let mut found: Vec<(SystemTime, PathBuf)> = sockets
        .filter(|path| is_live(path))
        .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

fn is_live(path: &Path) -> bool {
    match try_connect(path) {
        // The listener's backlog is full.
        Ok(()) | Err(Errno::AGAIN) => true,
        Err(Errno::CONNREFUSED) => {
            let _ = std::fs::remove_file(path);
            false
        }
        Err(_) => false,
    }
}

/// Connects without blocking.
fn try_connect(path: &Path) -> Result<(), Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)
}

/// Checks that a directory is this user's own and closed to others.
///
/// # Errors
///
/// Fails if it is not, or does not exist.
pub fn check_private(directory: &Path) -> io::Result<()> {
    match is_private_directory(&std::fs::symlink_metadata(directory)?, 0o077) {
        true => Ok(()),
        false => {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, "the socket directory is accessible to other users"))
        }
    }
}
