//! A model API that says what a script tells it to: `modeld script.json`, or the script as the first line of its input.

fn main() -> std::io::Result<()> {
    wharf_testkit::modeld::run(std::env::args().skip(1))
}
