//! Schemas of the clients' files, from their documentation in November 2026.

use crate::FileFormat;

use super::ExternalClient;
use super::client_schema::FieldConversion::{
    Address, Bearer, CommandLine, Flag, Handed, HeaderVariables, Inverse, Milliseconds, Pairs, Port, Scopes, Seconds,
    Text, Texts, Transport, WholeSeconds, Words,
};
use super::client_schema::{ClientSchema, FieldConversion, FieldMapping, both, ignored, missing, only_in};
use super::variable_syntax::VariableSyntax;

/// Returns the schema of a client's file.
pub(super) fn shape(client: ExternalClient) -> &'static ClientSchema {
    match client {
        ExternalClient::ClaudeCode => &CLAUDE_CODE,
        ExternalClient::ClaudeDesktop => &CLAUDE_DESKTOP,
        ExternalClient::Cursor => &CURSOR,
        ExternalClient::VsCode => &VS_CODE,
        ExternalClient::Codex => &CODEX,
        ExternalClient::Gemini => &GEMINI,
        ExternalClient::Opencode => &OPENCODE,
        ExternalClient::Goose => &GOOSE,
        ExternalClient::Zed => &ZED,
        ExternalClient::Windsurf => &WINDSURF,
    }
}

const MCP_SERVERS_ROOT: &[&[&str]] = &[&["mcpServers"]];

/// Transport names used by most clients, and common variants.
const TRANSPORT_NAMES: &[(&str, &str)] = &[
    ("stdio", "stdio"),
    ("http", "http"),
    ("sse", "sse"),
    ("streamable-http", "http"),
    ("streamableHttp", "http"),
    ("streamable_http", "http"),
];

const TRANSPORT: FieldConversion = Transport { words: TRANSPORT_NAMES, required: false };

const RULES_FIX: &str = "write `permissions` rules in the user configuration";

const CALLBACK: FieldMapping = both("oauth.callbackPort", "oauth.callback_port", Port);

static CLAUDE_CODE: ClientSchema = ClientSchema {
    format: FileFormat::Json,
    roots: MCP_SERVERS_ROOT,
    dialect: VariableSyntax::Braces { defaults: true },
    headers: None,
    fields: &[
        both("type", "type", TRANSPORT),
        both("command", "command", Text),
        both("args", "args", Texts),
        both("env", "env", Pairs),
        both("url", "url", Text),
        both("headers", "headers", Pairs),
        both("timeout", "timeout", Milliseconds),
        only_in("cwd", "cwd", Text),
        only_in("disabled", "enabled", Inverse),
        both("oauth.clientId", "oauth.client_id", Text),
        both("oauth.scopes", "oauth.scope", Text),
        CALLBACK,
        missing(
            "oauth.authServerMetadataUrl",
            "authorization server metadata is discovered",
            "set `oauth.authorization_url` and `oauth.token_url`",
        ),
        missing(
            "headersHelper",
            "Wharf runs no program to create headers",
            "set `headers`, with `${VAR}` for values that change",
        ),
    ],
};

static CLAUDE_DESKTOP: ClientSchema = ClientSchema {
    format: FileFormat::Json,
    roots: MCP_SERVERS_ROOT,
    dialect: VariableSyntax::Literal,
    headers: None,
    fields: &[
        both("command", "command", Text),
        both("args", "args", Texts),
        both("env", "env", Pairs),
        only_in("type", "type", TRANSPORT),
        only_in("url", "url", Text),
        only_in("headers", "headers", Pairs),
        only_in("disabled", "enabled", Inverse),
    ],
};

static CURSOR: ClientSchema = ClientSchema {
    format: FileFormat::Json,
    roots: MCP_SERVERS_ROOT,
    dialect: VariableSyntax::Editor { inputs: false },
    headers: None,
    fields: &[
        both("type", "type", TRANSPORT),
        both("command", "command", Text),
        both("args", "args", Texts),
        both("env", "env", Pairs),
        both("envFile", "envFile", Text),
        both("cwd", "cwd", Text),
        both("url", "url", Text),
        both("headers", "headers", Pairs),
        both("auth.CLIENT_ID", "oauth.client_id", Text),
        both("auth.CLIENT_SECRET", "oauth.client_secret", Text),
        both("auth.scopes", "oauth.scope", Scopes),
        both("disabled", "enabled", Inverse),
    ],
};

static VS_CODE: ClientSchema = ClientSchema {
    format: FileFormat::Json,
    roots: &[&["servers"], &["mcpServers"], &["mcp", "servers"]],
    dialect: VariableSyntax::Editor { inputs: true },
    headers: None,
    fields: &[
        both("type", "type", Transport { words: TRANSPORT_NAMES, required: true }),
        both("command", "command", Text),
        both("args", "args", Texts),
        both("env", "env", Pairs),
        both("envFile", "envFile", Text),
        both("cwd", "cwd", Text),
        both("url", "url", Text),
        both("headers", "headers", Pairs),
        both("oauth.clientId", "oauth.client_id", Text),
        only_in("disabled", "enabled", Inverse),
        ignored("gallery"),
        ignored("version"),
        missing("dev", "Wharf does not restart servers during development", ""),
        missing("sandboxEnabled", "servers are not run in a sandbox", "use a container as `command`"),
        missing("sandbox", "servers are not run in a sandbox", "use a container as `command`"),
    ],
};

static CODEX: ClientSchema = ClientSchema {
    format: FileFormat::Toml,
    roots: &[&["mcp_servers"]],
    dialect: VariableSyntax::Literal,
    headers: None,
    fields: &[
        both("command", "command", Text),
        both("args", "args", Texts),
        both("env_vars", "env", Handed),
        both("env", "env", Pairs),
        both("cwd", "cwd", Text),
        both("url", "url", Address("http")),
        both("bearer_token_env_var", "headers", Bearer),
        both("env_http_headers", "headers", HeaderVariables),
        both("http_headers", "headers", Pairs),
        both("enabled", "enabled", Flag),
        both("startup_timeout_sec", "startupTimeoutMs", Seconds),
        only_in("startup_timeout_ms", "startupTimeoutMs", Milliseconds),
        both("tool_timeout_sec", "timeout", Seconds),
        both("enabled_tools", "includeTools", Words),
        both("disabled_tools", "excludeTools", Words),
        both("scopes", "oauth.scope", Scopes),
        both("oauth.client_id", "oauth.client_id", Text),
        both("oauth.callback_port", "oauth.callback_port", Port),
        missing("oauth_resource", "the OAuth resource is discovered", ""),
        missing(
            "http_headers_helper",
            "Wharf runs no program to create headers",
            "set `headers`, with `${VAR}` for values that change",
        ),
        missing("required", "a server that fails to start does not stop Wharf", ""),
        missing(
            "supports_parallel_tool_calls",
            "calls run concurrently by default",
            "set `maxConcurrent` to 1 to run them one at a time",
        ),
        missing("default_tools_approval_mode", "permission rules decide which tools ask", RULES_FIX),
        missing("tools", "permission rules decide which tools ask", RULES_FIX),
    ],
};

static GEMINI: ClientSchema = ClientSchema {
    format: FileFormat::Json,
    roots: MCP_SERVERS_ROOT,
    dialect: VariableSyntax::Shell,
    headers: None,
    fields: &[
        only_in("type", "type", TRANSPORT),
        both("command", "command", Text),
        both("args", "args", Texts),
        both("env", "env", Pairs),
        both("cwd", "cwd", Text),
        both("httpUrl", "url", Address("http")),
        both("url", "url", Address("sse")),
        both("headers", "headers", Pairs),
        both("timeout", "timeout", Milliseconds),
        both("trust", "trust", Flag),
        both("includeTools", "includeTools", Words),
        both("excludeTools", "excludeTools", Words),
        ignored("description"),
        ignored("oauth.enabled"),
        both("oauth.clientId", "oauth.client_id", Text),
        both("oauth.clientSecret", "oauth.client_secret", Text),
        both("oauth.authorizationUrl", "oauth.authorization_url", Text),
        both("oauth.tokenUrl", "oauth.token_url", Text),
        both("oauth.registrationUrl", "oauth.registration_url", Text),
        both("oauth.scopes", "oauth.scope", Scopes),
        missing("oauth.redirectUri", "the redirect URI is chosen automatically", ""),
        missing("oauth.tokenParamName", "tokens are sent in a header", ""),
        missing("authProviderType", "only OAuth logins are supported", "set a token in `headers`"),
        missing("targetAudience", "only OAuth logins are supported", "set a token in `headers`"),
        missing("targetServiceAccount", "only OAuth logins are supported", "set a token in `headers`"),
    ],
};

static OPENCODE: ClientSchema = ClientSchema {
    format: FileFormat::Json,
    roots: &[&["mcp"]],
    dialect: VariableSyntax::Curly,
    headers: None,
    fields: &[
        both("type", "type", Transport { words: &[("local", "stdio"), ("remote", "")], required: true }),
        both("command", "command", CommandLine),
        both("environment", "env", Pairs),
        both("cwd", "cwd", Text),
        both("url", "url", Text),
        both("headers", "headers", Pairs),
        both("enabled", "enabled", Flag),
        only_in("disabled", "enabled", Inverse),
        both("timeout", "timeout", Milliseconds),
        only_in("timeout.request", "timeout", Milliseconds),
        only_in("timeout.startup", "startupTimeoutMs", Milliseconds),
        both("oauth.clientId", "oauth.client_id", Text),
        both("oauth.clientSecret", "oauth.client_secret", Text),
        both("oauth.scope", "oauth.scope", Text),
        only_in("oauth.client_id", "oauth.client_id", Text),
        only_in("oauth.client_secret", "oauth.client_secret", Text),
        CALLBACK,
        missing("oauth.redirectUri", "the redirect URI is chosen automatically", ""),
    ],
};

static GOOSE: ClientSchema = ClientSchema {
    format: FileFormat::Yaml,
    roots: &[&["extensions"]],
    dialect: VariableSyntax::Literal,
    headers: Some(VariableSyntax::Braces { defaults: false }),
    fields: &[
        both(
            "type",
            "type",
            Transport { words: &[("stdio", "stdio"), ("streamable_http", "http"), ("sse", "sse")], required: true },
        ),
        both("cmd", "command", Text),
        both("args", "args", Texts),
        both("env_keys", "env", Handed),
        both("envs", "env", Pairs),
        both("uri", "url", Text),
        both("headers", "headers", Pairs),
        both("timeout", "timeout", WholeSeconds),
        both("enabled", "enabled", Flag),
        both("available_tools", "includeTools", Words),
        ignored("name"),
        ignored("display_name"),
        ignored("description"),
        ignored("bundled"),
    ],
};

static ZED: ClientSchema = ClientSchema {
    format: FileFormat::Json,
    roots: &[&["context_servers"]],
    dialect: VariableSyntax::Literal,
    headers: None,
    fields: &[
        both("command", "command", Text),
        only_in("command.path", "command", Text),
        only_in("command.args", "args", Texts),
        only_in("command.env", "env", Pairs),
        both("args", "args", Texts),
        both("env", "env", Pairs),
        both("url", "url", Text),
        both("headers", "headers", Pairs),
        both("enabled", "enabled", Flag),
        ignored("source"),
        missing("settings", "Wharf has no extensions", "set `command` and `args`"),
    ],
};

static WINDSURF: ClientSchema = ClientSchema {
    format: FileFormat::Json,
    roots: MCP_SERVERS_ROOT,
    dialect: VariableSyntax::Editor { inputs: false },
    headers: None,
    fields: &[
        only_in("type", "type", TRANSPORT),
        both("command", "command", Text),
        both("args", "args", Texts),
        both("env", "env", Pairs),
        both("serverUrl", "url", Text),
        only_in("url", "url", Text),
        both("headers", "headers", Pairs),
        both("disabled", "enabled", Inverse),
        both("disabledTools", "excludeTools", Words),
        missing("alwaysAllow", "permission rules decide which tools ask", RULES_FIX),
    ],
};
