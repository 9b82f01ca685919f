//! The fault server: `faultd stdio S41 --phase during --era modern`, or `http`, or `sse`.

fn main() {
    wharf_testkit::faultd::run(std::env::args().skip(1))
}
