//! Builds a configuration entry from command-line flags.

use serde_json::{Map, Value};
use url::Url;
use wharf_config::{TemplatePart, parse_template};

use super::AddArgs;
use super::flags::{AddFlags, OauthFlags, ServerSettingFlags, TransportFlag};
use wharf_terminal::failure::Failure;

/// Placeholder for a secret that is prompted for.
const SECRET_PLACEHOLDER: &str = "-";

/// Target of a new server.
enum AddTarget {
    Start { command: String, args: Vec<String> },
    Dial { url: String },
}

/// Builds the entry that the arguments describe.
///
/// # Errors
///
/// Fails if the arguments are contradictory or incomplete.
pub fn build_entry(args: &AddArgs) -> Result<Map<String, Value>, Failure> {
    let way = add_target(args)?;
    reject_unsuitable_flags(&args.flags, &way)?;
    let mut entry = Map::new();
    match way {
        AddTarget::Start { command, args: words } => insert_stdio_keys(&mut entry, &args.flags, command, words)?,
        AddTarget::Dial { url } => insert_http_keys(&mut entry, &args.flags, url)?,
    }
    insert_setting_keys(&mut entry, &args.flags.setting_flags);
    Ok(entry)
}

/// Determines the command or URL, which can be given in several ways.
fn add_target(args: &AddArgs) -> Result<AddTarget, Failure> {
    let AddFlags { transport, url, command, arg, .. } = &args.flags;
    let words = || args.rest.iter().chain(arg).cloned().collect();
    let is_address = |text: &str| match transport {
        Some(TransportFlag::Stdio) => false,
        Some(_) => true,
        None => text.starts_with("http://") || text.starts_with("https://"),
    };
    match (&args.target, url, command) {
        (Some(text), ..) if is_address(text) => reject_arguments(args, AddTarget::Dial { url: text.clone() }),
        (Some(text), ..) => Ok(AddTarget::Start { command: text.clone(), args: words() }),
        (None, Some(url), _) => reject_arguments(args, AddTarget::Dial { url: url.clone() }),
        (None, None, Some(command)) => Ok(AddTarget::Start { command: command.clone(), args: words() }),
        (None, None, None) => {
            let id = &args.id;
            let failure = Failure::usage("neither a URL nor a command was given");
            Err(failure.with_hint(format_args!("wharf add {id} URL, or wharf add {id} -- COMMAND ARGS…")))
        }
    }
}

/// Rejects arguments given together with a URL.
fn reject_arguments(args: &AddArgs, way: AddTarget) -> Result<AddTarget, Failure> {
    if args.rest.is_empty() && args.flags.arg.is_empty() {
        return Ok(way);
    }
    let failure = Failure::usage("a server at a URL takes no arguments");
    Err(failure.with_hint("put a command after --, as in wharf add NAME -- COMMAND ARGS…"))
}

/// Rejects flags that do not apply to this kind of target.
fn reject_unsuitable_flags(flags: &AddFlags, way: &AddTarget) -> Result<(), Failure> {
    let AddFlags { transport, header, env, cwd, login, .. } = flags;
    let (odd, instead) = match way {
        AddTarget::Start { .. } => {
            let wrong = transport.is_some_and(|transport| transport != TransportFlag::Stdio);
            let odd = [("--transport http", wrong), ("--header", !header.is_empty()), ("--oauth-…", login.is_given())];
            (odd, "use --env for a server that is started as a command")
        }
        AddTarget::Dial { .. } => {
            let odd = [
                ("--transport stdio", *transport == Some(TransportFlag::Stdio)),
                ("--env", !env.is_empty()),
                ("--cwd", cwd.is_some()),
            ];
            (odd, "use --header for a server at a URL")
        }
    };
    match odd.into_iter().find(|(_, is_there)| *is_there) {
        Some((flag, _)) => {
            Err(Failure::usage(format_args!("{flag} does not apply to this kind of server")).with_hint(instead))
        }
        None => Ok(()),
    }
}

fn insert_stdio_keys(
    entry: &mut Map<String, Value>,
    flags: &AddFlags,
    command: String,
    args: Vec<String>,
) -> Result<(), Failure> {
    entry.insert("command".to_owned(), command.into());
    if !args.is_empty() {
        entry.insert("args".to_owned(), args.into());
    }
    if let Some(cwd) = &flags.cwd {
        let cwd = cwd.to_str().ok_or_else(|| Failure::usage("--cwd is not UTF-8"))?;
        entry.insert("cwd".to_owned(), cwd.into());
    }
    let (mut env, mut handed) = (Map::new(), Vec::new());
    for text in &flags.env {
        match text.split_once('=') {
            Some(("", _)) => return Err(Failure::usage("--env needs a name, as in --env NAME=VALUE")),
            Some((name, value)) => drop(env.insert(name.to_owned(), value.into())),
            None => handed.push(text.clone()),
        }
    }
    if !env.is_empty() {
        entry.insert("env".to_owned(), env.into());
    }
    if !handed.is_empty() {
        entry.insert("envVars".to_owned(), handed.into());
    }
    Ok(())
}

fn insert_http_keys(entry: &mut Map<String, Value>, flags: &AddFlags, url: String) -> Result<(), Failure> {
    check_address("the URL", &url)?;
    entry.insert("url".to_owned(), url.into());
    match flags.transport {
        Some(TransportFlag::Http) => drop(entry.insert("type".to_owned(), "http".into())),
        Some(TransportFlag::Sse) => drop(entry.insert("type".to_owned(), "sse".into())),
        _ => {}
    }
    let headers = flags.header.iter().map(|text| header(text)).collect::<Result<Map<_, _>, _>>()?;
    if !headers.is_empty() {
        entry.insert("headers".to_owned(), headers.into());
    }
    let oauth = oauth(&flags.login)?;
    if !oauth.is_empty() {
        entry.insert("oauth".to_owned(), oauth.into());
    }
    Ok(())
}

/// Parses `NAME=VALUE` or `NAME: VALUE`. The failure does not repeat the text, which may be a secret.
fn header(text: &str) -> Result<(String, Value), Failure> {
    let bad =
        || Failure::usage("--header needs a name and a value").with_hint("as in -H NAME=VALUE or -H 'NAME: VALUE'");
    let (name, value) = text.split_once(['=', ':']).ok_or_else(bad)?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.trim().is_empty() || !name.trim().bytes().all(is_token) {
        return Err(bad());
    }
    Ok((name.trim().to_owned(), value.trim().into()))
}

fn oauth(login: &OauthFlags) -> Result<Map<String, Value>, Failure> {
    for (flag, url) in login.addresses() {
        url.as_ref().map_or(Ok(()), |url| check_address(flag, url))?;
    }
    let members = login.oauth_members().into_iter();
    Ok(members.filter_map(|(key, value)| Some((key.to_owned(), value.clone()?.into()))).collect())
}

/// Rejects a text that is not an HTTP URL. A text with references is not checked before they are resolved.
fn check_address(what: &str, text: &str) -> Result<(), Failure> {
    let is_literal = parse_template(text).iter().all(|part| matches!(part, TemplatePart::Text(_)));
    let is_address = Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    if is_literal && !is_address {
        let failure = Failure::usage(format_args!("{what} is not an http:// or https:// URL"));
        return Err(failure.with_hint("write it like https://example.org/mcp"));
    }
    Ok(())
}

fn insert_setting_keys(entry: &mut Map<String, Value>, setting_flags: &ServerSettingFlags) {
    let mut put = |key: &str, value: Option<Value>| value.map(|value| entry.insert(key.to_owned(), value));
    let list = |items: &[String]| (!items.is_empty()).then(|| Value::from(items.to_vec()));
    put("enabled", setting_flags.enabled.filter(|enabled| !enabled).map(Into::into));
    put("timeout", setting_flags.request_timeout_ms.map(Into::into));
    put("trust", setting_flags.trust.then(|| true.into()));
    put("lazy", setting_flags.lazy.then(|| true.into()));
    put("includeTools", list(&setting_flags.include_tools));
    put("excludeTools", list(&setting_flags.exclude_tools));
    put("description", setting_flags.description.clone().map(Into::into));
}

impl OauthFlags {
    fn addresses(&self) -> [(&'static str, &Option<String>); 3] {
        [
            ("--oauth-authorization-url", &self.oauth_authorization_url),
            ("--oauth-token-url", &self.oauth_token_url),
            ("--oauth-registration-url", &self.oauth_registration_url),
        ]
    }

    fn oauth_members(&self) -> [(&'static str, &Option<String>); 6] {
        [
            ("authorization_url", &self.oauth_authorization_url),
            ("token_url", &self.oauth_token_url),
            ("registration_url", &self.oauth_registration_url),
            ("client_id", &self.oauth_client_id),
            ("client_secret", &self.oauth_client_secret),
            ("scope", &self.oauth_scope),
        ]
    }

    fn is_given(&self) -> bool {
        self.oauth_members().iter().any(|(_, value)| value.is_some())
    }
}

/// Returns the members to prompt for, each as its object and its name, in the order of the arguments.
pub fn prompted_members(args: &AddArgs, entry: &Map<String, Value>) -> Vec<(&'static str, String)> {
    let name = |text: &String| text.split(['=', ':']).next().unwrap_or_default().trim().to_owned();
    let env = args.flags.env.iter().map(|text| ("env", name(text)));
    let headers = args.flags.header.iter().map(|text| ("headers", name(text)));
    let all = env.chain(headers).chain([("oauth", "client_secret".to_owned())]);
    let value = |key: &str, name: &str| entry.get(key)?.get(name)?.as_str().and_then(placeholder_prefix);
    all.filter(|(key, name)| value(key, name).is_some()).collect()
}

/// Inserts a secret in place of its placeholder.
pub fn insert_secret(entry: &mut Map<String, Value>, (key, name): &(&'static str, String), secret: &str) {
    let Some(value) = entry.get_mut(*key).and_then(|members| members.get_mut(name.as_str())) else { return };
    if let Some(before) = value.as_str().and_then(placeholder_prefix) {
        *value = format!("{before}{}", escape_reference(secret)).into();
    }
}

/// Returns the text before the placeholder, as in `Bearer -`. May be empty.
fn placeholder_prefix(text: &str) -> Option<&str> {
    text.strip_suffix(SECRET_PLACEHOLDER).filter(|before| before.is_empty() || before.ends_with(' '))
}

/// Escapes `${` in a secret, so that it is not read as a reference.
fn escape_reference(secret: &str) -> String {
    secret.replace("${", "$${")
}
