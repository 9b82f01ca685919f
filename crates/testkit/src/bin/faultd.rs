//! The scriptable stdio server: `faultd stdio S41 --phase during --era modern`.

fn main() {
    wharf_testkit::faultd::run(std::env::args().skip(1))
}
