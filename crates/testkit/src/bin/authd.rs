//! Runs an authorization server and its protected server: `authd rotation=single_use expires_in=0`.

fn main() -> std::io::Result<()> {
    wharf_testkit::authd::run(std::env::args().skip(1))
}
