//! A scripted model API: `modeld script.json`, or the script as the first line of its input.

fn main() -> std::io::Result<()> {
    wharf_testkit::modeld::run(std::env::args().skip(1))
}
