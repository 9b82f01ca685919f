//! Identity of a server for its cached lists.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use wharf_spec::{HttpSpec, HttpTransport, ServerName, ServerOrigin, ServerSpec, StdioSpec, mask_url_secrets};

/// Returns the name of the file in the directory `catalogs` that caches the lists of a server. The server's name is part
/// of it, because two accounts at one address have the same identity.
pub fn cache_file_name(server: &ServerName, identity: &str) -> String {
    format!("{server}-{identity}.json")
}

/// Returns a hexadecimal digest of a server's spec. A cache of a server with another spec is not used.
///
/// Possibly secret values are excluded, only their names are included: a new token does not change the identity. Two
/// accounts at the same address therefore have the same identity, and a cache has to distinguish them by server name. A
/// user's own server and one defined by another file differ, even if their specs are equal.
pub fn identity(origin: &ServerOrigin, spec: &ServerSpec) -> String {
    let mut digest = ListDigest(Sha256::new());
    if let Some(file) = origin.file() {
        digest.add_list([&b"defined in"[..], file.as_os_str().as_encoded_bytes()]);
    }
    match spec {
        ServerSpec::Stdio(spec) => hash_stdio(&mut digest, spec),
        ServerSpec::Http(spec) => hash_http(&mut digest, spec),
    }
    digest.0.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn hash_stdio(digest: &mut ListDigest, spec: &StdioSpec) {
    let StdioSpec { program, args, cwd, env, inherit_env, hidden: _, launch_check: _ } = spec;
    digest.add_list([&b"stdio"[..], program.as_encoded_bytes()]);
    digest.add_list(args.iter().map(|argument| argument.as_encoded_bytes()));
    digest.add_list(cwd.iter().map(|folder| folder.as_os_str().as_encoded_bytes()));
    digest.add_set(env.iter().map(|(name, _)| name.as_encoded_bytes().to_vec()));
    digest.add_list([[u8::from(*inherit_env)]]);
}

fn hash_http(digest: &mut ListDigest, spec: &HttpSpec) {
    let form = match spec.form {
        HttpTransport::Automatic => "automatic",
        HttpTransport::Streamable => "streamable",
        HttpTransport::Sse => "sse",
    };
    digest.add_list(["http", form, &mask_url_secrets(&spec.url)]);
    // Header names are case-insensitive.
    digest.add_set(spec.headers.iter().map(|(name, _)| name.to_ascii_lowercase().into_bytes()));
}

/// A digest over lists of texts. Each text is prefixed with its length and each list is terminated.
struct ListDigest(Sha256);

impl ListDigest {
    fn add_list<T: AsRef<[u8]>>(&mut self, parts: impl IntoIterator<Item = T>) {
        for part in parts {
            self.0.update([1]);
            self.0.update((part.as_ref().len() as u64).to_be_bytes());
            self.0.update(part.as_ref());
        }
        self.0.update([0]);
    }

    /// Adds a list whose order is irrelevant.
    fn add_set(&mut self, parts: impl Iterator<Item = Vec<u8>>) {
        let mut parts: Vec<Vec<u8>> = parts.collect();
        parts.sort();
        self.add_list(parts);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::ffi::OsString;
    use std::path::Path;

    use wharf_spec::{EnvValue, Secret};

    use super::*;

    fn stdio_spec(program: &str, args: &[&str], env: &[(&str, &str)]) -> ServerSpec {
        let secret = |value: &str| EnvValue::Secret(Secret::new(value));
        ServerSpec::Stdio(StdioSpec {
            program: program.into(),
            args: args.iter().map(OsString::from).collect(),
            env: env.iter().map(|(name, value)| (OsString::from(name), secret(value))).collect(),
            ..StdioSpec::default()
        })
    }

    fn http_spec(url: &str, headers: &[(&str, &str)]) -> ServerSpec {
        let mut spec = HttpSpec::new(url.parse().unwrap());
        spec.headers = headers.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect();
        ServerSpec::Http(spec)
    }

    #[test]
    fn identity_ignores_secrets_and_name_order() {
        for (one, other) in [
            (stdio_spec("a", &["b"], &[("X", "1"), ("Y", "2")]), stdio_spec("a", &["b"], &[("Y", "3"), ("X", "4")])),
            (
                http_spec("https://me:one@host/mcp?key=1", &[("A", "1")]),
                http_spec("https://me:two@host/mcp?key=2", &[("a", "2")]),
            ),
        ] {
            let digest = |spec| identity(ServerOrigin::USER, spec);
            assert_eq!(digest(&one), digest(&other));
            assert_eq!(digest(&one).len(), 64);
        }
    }

    #[test]
    fn identity_differs_for_any_other_change() {
        let mut elsewhere = StdioSpec { program: "a".into(), cwd: Some("/x".into()), ..StdioSpec::default() };
        let in_folder = ServerSpec::Stdio(elsewhere.clone());
        elsewhere.inherit_env = true;
        let mut sse = HttpSpec::new("https://host/mcp".parse().unwrap());
        sse.form = HttpTransport::Sse;
        let all = [
            stdio_spec("a", &[], &[]),
            stdio_spec("a", &["b", "c"], &[]),
            stdio_spec("a", &["bc"], &[]),
            stdio_spec("a", &["b"], &[("c", "")]),
            stdio_spec("a", &[], &[("b", ""), ("c", "")]),
            in_folder,
            ServerSpec::Stdio(elsewhere),
            http_spec("https://host/mcp", &[]),
            http_spec("https://host/mcp", &[("A", "1")]),
            http_spec("https://host/mcp?key=1", &[]),
            http_spec("https://host/other", &[]),
            http_spec("http://host/mcp", &[]),
            ServerSpec::Http(sse),
        ];
        let origins = ["/a/.mcp.json", "/b/.mcp.json"].map(|file| ServerOrigin::File(Path::new(file).into()));
        let origins = [ServerOrigin::User].into_iter().chain(origins);
        let identities: HashSet<String> = origins
            .flat_map(|origin| all.iter().map(move |spec| identity(&origin, spec)).collect::<Vec<_>>())
            .collect();
        assert_eq!(identities.len(), 3 * all.len());
    }
}
