//! The demo server over HTTP: stateless, with a session, and with the older HTTP+SSE transport.

use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use url::Url;
use wharf_client::{Connection, Transport, connect_http};
use wharf_spec::{HttpSpec, ServerSpec};

use super::demo_servers::DemoServers;
use super::scenes::{call_tool, ensure};
use super::tour::SceneResult;
use wharf_terminal::content::content_text;
use wharf_terminal::failure::{Failure, render_failure};
use wharf_terminal::style::{NAME, QUIET, paint};

/// Name, arguments of the server, and the expected transport.
const HTTP_FORMS: [(&str, &[&str], Transport); 3] = [
    ("stateless", &["--http", "127.0.0.1:0"], Transport::StreamableHttp),
    ("session", &["--http", "127.0.0.1:0", "--revision", "2025-11-25"], Transport::StreamableHttp),
    ("stream", &["--sse", "127.0.0.1:0"], Transport::HttpSse),
];

pub async fn forms(cast: &DemoServers<'_>) -> SceneResult {
    let mut lines = Vec::new();
    for (name, arguments, expected) in HTTP_FORMS {
        let server = BackgroundServer::start(cast, arguments).await.map_err(|error| error.to_string())?;
        let url = server.url.clone();
        let connection = dial(cast, name, url.clone()).await?;
        ensure(connection.facts().transport == expected, "the expected transport should be detected")?;
        let answer = call_tool(&connection, "echo", r#"{"text":"Ahoy!"}"#).await?;
        ensure(content_text(&answer.content) == "Ahoy!", "echo should repeat the text")?;
        let header_line = if name == "stateless" { call_with_header(&connection).await? } else { String::new() };
        lines.push(format!(
            "{} {}  {}",
            paint(NAME, format_args!("{name:<9}")),
            connection.facts().revision,
            paint(QUIET, format_args!("wharf call echo text=Ahoy! --url {url}"))
        ));
        lines.extend((!header_line.is_empty()).then_some(header_line));
        connection.close().await;
        server.stop().await.map_err(|error| error.to_string())?;
    }
    Ok(lines)
}

/// Calls a tool that requires an argument to be repeated in a header, where intermediaries can read it.
async fn call_with_header(connection: &Connection) -> Result<String, String> {
    let answer = call_tool(connection, "clear_customs", r#"{"region":"north"}"#).await?;
    let text = content_text(&answer.content);
    ensure(text.contains("north"), "the region should have been sent in a header")?;
    Ok(format!("          {}", wharf_spec::UntrustedText::new(text).truncate(120)))
}

async fn dial(cast: &DemoServers<'_>, name: &str, url: Url) -> Result<Connection, String> {
    let (spec, options) = (HttpSpec::new(url), cast.options(name));
    let environment = options.surroundings.clone();
    let connected = connect_http(&spec, options).await;
    let connection = connected.map_err(|error| {
        render_failure(&Failure::from_connect_error(name, &ServerSpec::Http(spec), &environment, error))
    })?;
    cast.session.track_connection(&connection);
    Ok(connection)
}

/// A demo server on a local port, which exits when its stdin closes.
struct BackgroundServer {
    child: Child,
    url: Url,
}

impl BackgroundServer {
    async fn start(cast: &DemoServers<'_>, arguments: &[&str]) -> io::Result<Self> {
        let mut command = Command::new(&cast.program);
        command.args(["demo-server", "--until-stdin-closes"]).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        blocking(move || {
            let mut child = command.spawn()?;
            let mut line = String::new();
            if let Some(stderr) = child.stderr.take() {
                BufReader::new(stderr).read_line(&mut line)?;
            }
            let url = line.trim().strip_prefix("listening on ").and_then(|url| Url::parse(url).ok());
            match url {
                Some(url) => Ok(Self { child, url }),
                None => Err(io::Error::other(format!("the demo server did not start: {}", line.trim()))),
            }
        })
        .await
    }

    /// Closes the server's stdin and waits for its exit.
    async fn stop(mut self) -> io::Result<()> {
        drop(self.child.stdin.take());
        blocking(move || self.child.wait()).await.map(drop)
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    wharf_threads::run_blocking(work).await.flatten()
}
