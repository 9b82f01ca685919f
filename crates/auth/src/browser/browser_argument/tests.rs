use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::*;

/// Unchanged URLs.
const PLAIN: [&str; 12] = [
    "https://as.example/authorize",
    "https://as.example",
    "https://as.example?x=1",
    "https://as.example/a?response_type=code&client_id=c&redirect_uri=http%3A%2F%2F127.0.0.1%3A7%2Fcallback",
    "https://as.example:8443/a?b=c#d",
    "https://as.example/a/../b",
    "https://as.example/a%20b?c=%2f%2F",
    "http://127.0.0.1:7/a",
    "http://127.9.8.7/a",
    "http://localhost:7/a?b",
    "http://[::1]:7/a",
    "https://[2001:db8::1]/a",
];

/// Shell metacharacters, and their encoded form.
const ENCODED: [(&str, &str); 24] = [
    ("https://h/$(touch x)", "https://h/%24%28touch%20x%29"),
    ("https://h/`touch x`", "https://h/%60touch%20x%60"),
    ("https://h/;touch", "https://h/%3Btouch"),
    ("https://h/|touch", "https://h/%7Ctouch"),
    ("https://h/a&&touch", "https://h/a&&touch"),
    ("https://h/?a=b&calc", "https://h/?a=b&calc"),
    ("https://h/\"touch\"", "https://h/%22touch%22"),
    ("https://h/'touch'", "https://h/%27touch%27"),
    ("https://h/>x<y", "https://h/%3Ex%3Cy"),
    ("https://h/${IFS}x", "https://h/%24%7BIFS%7Dx"),
    ("https://h/$HOME", "https://h/%24HOME"),
    ("https://h/^x!y", "https://h/%5Ex%21y"),
    ("https://h/*[a]", "https://h/%2A%5Ba%5D"),
    ("https://h/{a,b}", "https://h/%7Ba,b%7D"),
    ("https://h/a b", "https://h/a%20b"),
    ("https://h/?q=\"&start calc", "https://h/?q=%22&start%20calc"),
    ("https://h/--upload-pack=x", "https://h/--upload-pack=x"),
    ("https://h/-e", "https://h/-e"),
    ("https://h/\u{fc}", "https://h/%C3%BC"),
    ("https://h/\u{202e}x", "https://h/%E2%80%AEx"),
    ("https://h/%24(x)", "https://h/%24%28x%29"),
    ("https://h/%PATH%", "https://h/%PATH%"),
    ("HTTPS://H.Example/A", "https://h.example/A"),
    ("https://\u{fc}.example/a", "https://xn--tda.example/a"),
];

/// Rejected URLs (T39: schemes, and http on other machines; T38: invalid characters).
const REFUSED: [&str; 52] = [
    "",
    " ",
    "-",
    "--upload-pack=x",
    "-https://h/",
    "as.example",
    "/etc/passwd",
    "//as.example/a",
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    "data:text/html,<script>",
    "file:///etc/passwd",
    "file://h/share",
    "ftp://h/",
    "ssh://-oProxyCommand=x/",
    "smb://h/share",
    "vscode://x/y",
    "ms-msdt:/id",
    "search-ms:query=x",
    "mailto:a@b.example",
    "tel:1",
    "about:blank",
    "blob:https://h/x",
    "chrome://settings",
    "view-source:https://h/",
    "ws://h/",
    "wss://h/",
    "gopher://h/",
    "ldap://h/",
    "jar:https://h/!/x",
    "intent://h/#Intent;end",
    "steam://run/1",
    "http://as.example/",
    "http://10.0.0.1/",
    "http://169.254.169.254/",
    "http://0.0.0.0/",
    "http://localhost.example/",
    "http://127.0.0.1.example/",
    "http://[::2]/",
    "https://",
    "https:///",
    "https://me@h/",
    "https://me:pass@h/",
    "https://good.example@evil.example/",
    "https://h/\ntouch x",
    "https://h/\r\nx",
    "https://h/\0x",
    "https://h/\tx",
    " https://h/",
    "https://h/ ",
    "https://good.example\\@evil.example/",
    "https:\\\\h\\x",
];

#[test]
fn t38_cve_2025_6514_urls_are_encoded_or_refused() {
    assert!(PLAIN.len() + ENCODED.len() + REFUSED.len() >= 80);
    for url in PLAIN {
        assert_eq!(browser_argument(url).as_deref(), Ok(url));
    }
    for (url, expected) in ENCODED {
        assert_eq!(browser_argument(url).as_deref(), Ok(expected), "{url}");
    }
    let endless = format!("https://h/{}", "x".repeat(MAX_URL_BYTES));
    for url in REFUSED.into_iter().chain([endless.as_str()]) {
        let refused = browser_argument(url);
        assert!(matches!(refused, Err(VisitError::NotPossible(_))), "{url:?}: {refused:?}");
    }
}

/// Even an opener that is a shell script without quoting runs nothing and opens a single URL.
#[test]
fn t38_cve_2025_6514_opener_gets_one_inert_argument() {
    let folder = tempfile::tempdir().unwrap();
    let (opener, seen) = (folder.path().join("xdg-open"), folder.path().join("seen"));
    let script =
        format!("#!/bin/sh\nset -f\necho $# >> {0}\nsh -c \"echo '$1' > /dev/null\"\necho $1 >> {0}\n", seen.display());
    fs::write(&opener, script).unwrap();
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o700)).unwrap();
    let all: Vec<&str> = PLAIN.into_iter().chain(ENCODED.map(|(url, _)| url)).chain(REFUSED).collect();
    let mut expected = String::new();
    for argument in all.into_iter().filter_map(|url| browser_argument(url).ok()) {
        assert!(Command::new(&opener).arg(&argument).current_dir(folder.path()).status().unwrap().success());
        expected.push_str(&format!("1\n{argument}\n"));
    }
    assert_eq!(fs::read_to_string(&seen).unwrap(), expected);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "something else was made: {left:?}");
}
