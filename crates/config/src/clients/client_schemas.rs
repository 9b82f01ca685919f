//! Schemas of the clients' files, from their documentation in November 2026.

use crate::FileFormat;

use super::ExternalClient;
use super::client_schema::FieldConversion::{
    Address, Bearer, CommandLine, Flag, Handed, HeaderVariables, HeadersCommand, Inverse, Milliseconds, Pairs, Port,
    Scopes, Seconds, Text, Texts, Transport, WholeSeconds, Words,
};
use super::client_schema::{
    ClientSchema, FieldConversion, FieldMapping, ignored_field, import_only, same_name, two_way, unsupported_field,
};
use super::variable_syntax::VariableSyntax;

/// Returns the schema of a client's file.
pub(super) fn client_schema(client: ExternalClient) -> &'static ClientSchema {
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

const RULES_DECIDE: &str = "permission rules decide which tools ask";
const RULES_FIX: &str = "write `permissions` rules in the user configuration";

const CALLBACK: FieldMapping = two_way("oauth.callbackPort", "oauth.callback_port", Port);

static CLAUDE_CODE: ClientSchema = ClientSchema {
    format: FileFormat::Json,
    roots: MCP_SERVERS_ROOT,
    dialect: VariableSyntax::Braces { defaults: true },
    headers: None,
    fields: &[
        same_name("type", TRANSPORT),
        same_name("command", Text),
        same_name("args", Texts),
        same_name("env", Pairs),
        same_name("url", Text),
        same_name("headers", Pairs),
        same_name("timeout", Milliseconds),
        import_only("cwd", "cwd", Text),
        import_only("disabled", "enabled", Inverse),
        two_way("oauth.clientId", "oauth.client_id", Text),
        two_way("oauth.scopes", "oauth.scope", Text),
        CALLBACK,
        unsupported_field(
            "oauth.authServerMetadataUrl",
            "authorization server metadata is discovered",
            "set `oauth.authorization_url` and `oauth.token_url`",
        ),
        import_only("headersHelper", "headersCommand", HeadersCommand),
    ],
};

static CLAUDE_DESKTOP: ClientSchema = ClientSchema {
    format: FileFormat::Json,
    roots: MCP_SERVERS_ROOT,
    dialect: VariableSyntax::Literal,
    headers: None,
    fields: &[
        same_name("command", Text),
        same_name("args", Texts),
        same_name("env", Pairs),
        import_only("type", "type", TRANSPORT),
        import_only("url", "url", Text),
        import_only("headers", "headers", Pairs),
        import_only("disabled", "enabled", Inverse),
    ],
};

static CURSOR: ClientSchema = ClientSchema {
    format: FileFormat::Json,
    roots: MCP_SERVERS_ROOT,
    dialect: VariableSyntax::Editor { inputs: false },
    headers: None,
    fields: &[
        same_name("type", TRANSPORT),
        same_name("command", Text),
        same_name("args", Texts),
        same_name("env", Pairs),
        same_name("envFile", Text),
        same_name("cwd", Text),
        same_name("url", Text),
        same_name("headers", Pairs),
        two_way("auth.CLIENT_ID", "oauth.client_id", Text),
        two_way("auth.CLIENT_SECRET", "oauth.client_secret", Text),
        two_way("auth.scopes", "oauth.scope", Scopes),
        two_way("disabled", "enabled", Inverse),
    ],
};

static VS_CODE: ClientSchema = ClientSchema {
    format: FileFormat::Json,
    roots: &[&["servers"], &["mcpServers"], &["mcp", "servers"]],
    dialect: VariableSyntax::Editor { inputs: true },
    headers: None,
    fields: &[
        same_name("type", Transport { words: TRANSPORT_NAMES, required: true }),
        same_name("command", Text),
        same_name("args", Texts),
        same_name("env", Pairs),
        same_name("envFile", Text),
        same_name("cwd", Text),
        same_name("url", Text),
        same_name("headers", Pairs),
        two_way("oauth.clientId", "oauth.client_id", Text),
        import_only("disabled", "enabled", Inverse),
        ignored_field("gallery"),
        ignored_field("version"),
        unsupported_field("dev", "Wharf does not restart servers during development", ""),
        unsupported_field("sandboxEnabled", "servers are not run in a sandbox", "use a container as `command`"),
        unsupported_field("sandbox", "servers are not run in a sandbox", "use a container as `command`"),
    ],
};

static CODEX: ClientSchema = ClientSchema {
    format: FileFormat::Toml,
    roots: &[&["mcp_servers"]],
    dialect: VariableSyntax::Literal,
    headers: None,
    fields: &[
        same_name("command", Text),
        same_name("args", Texts),
        two_way("env_vars", "env", Handed),
        same_name("env", Pairs),
        same_name("cwd", Text),
        same_name("url", Address("http")),
        two_way("bearer_token_env_var", "headers", Bearer),
        two_way("env_http_headers", "headers", HeaderVariables),
        two_way("http_headers", "headers", Pairs),
        same_name("enabled", Flag),
        two_way("startup_timeout_sec", "startupTimeoutMs", Seconds),
        import_only("startup_timeout_ms", "startupTimeoutMs", Milliseconds),
        two_way("tool_timeout_sec", "timeout", Seconds),
        two_way("enabled_tools", "includeTools", Words),
        two_way("disabled_tools", "excludeTools", Words),
        two_way("scopes", "oauth.scope", Scopes),
        same_name("oauth.client_id", Text),
        same_name("oauth.callback_port", Port),
        unsupported_field("oauth_resource", "the OAuth resource is discovered", ""),
        import_only("http_headers_helper", "headersCommand", HeadersCommand),
        unsupported_field("required", "a server that fails to start does not stop Wharf", ""),
        unsupported_field(
            "supports_parallel_tool_calls",
            "calls run concurrently by default",
            "set `maxConcurrent` to 1 to run them one at a time",
        ),
        unsupported_field("default_tools_approval_mode", RULES_DECIDE, RULES_FIX),
        unsupported_field("tools", RULES_DECIDE, RULES_FIX),
    ],
};

static GEMINI: ClientSchema = ClientSchema {
    format: FileFormat::Json,
    roots: MCP_SERVERS_ROOT,
    dialect: VariableSyntax::Shell,
    headers: None,
    fields: &[
        import_only("type", "type", TRANSPORT),
        same_name("command", Text),
        same_name("args", Texts),
        same_name("env", Pairs),
        same_name("cwd", Text),
        two_way("httpUrl", "url", Address("http")),
        same_name("url", Address("sse")),
        same_name("headers", Pairs),
        same_name("timeout", Milliseconds),
        same_name("trust", Flag),
        same_name("includeTools", Words),
        same_name("excludeTools", Words),
        ignored_field("description"),
        ignored_field("oauth.enabled"),
        two_way("oauth.clientId", "oauth.client_id", Text),
        two_way("oauth.clientSecret", "oauth.client_secret", Text),
        two_way("oauth.authorizationUrl", "oauth.authorization_url", Text),
        two_way("oauth.tokenUrl", "oauth.token_url", Text),
        two_way("oauth.registrationUrl", "oauth.registration_url", Text),
        two_way("oauth.scopes", "oauth.scope", Scopes),
        unsupported_field("oauth.redirectUri", "the redirect URI is chosen automatically", ""),
        unsupported_field("oauth.tokenParamName", "tokens are sent in a header", ""),
        unsupported_field("authProviderType", "only OAuth logins are supported", "set a token in `headers`"),
        unsupported_field("targetAudience", "only OAuth logins are supported", "set a token in `headers`"),
        unsupported_field("targetServiceAccount", "only OAuth logins are supported", "set a token in `headers`"),
    ],
};

static OPENCODE: ClientSchema = ClientSchema {
    format: FileFormat::Json,
    roots: &[&["mcp"]],
    dialect: VariableSyntax::Curly,
    headers: None,
    fields: &[
        same_name("type", Transport { words: &[("local", "stdio"), ("remote", "")], required: true }),
        same_name("command", CommandLine),
        two_way("environment", "env", Pairs),
        same_name("cwd", Text),
        same_name("url", Text),
        same_name("headers", Pairs),
        same_name("enabled", Flag),
        import_only("disabled", "enabled", Inverse),
        same_name("timeout", Milliseconds),
        import_only("timeout.request", "timeout", Milliseconds),
        import_only("timeout.startup", "startupTimeoutMs", Milliseconds),
        two_way("oauth.clientId", "oauth.client_id", Text),
        two_way("oauth.clientSecret", "oauth.client_secret", Text),
        same_name("oauth.scope", Text),
        import_only("oauth.client_id", "oauth.client_id", Text),
        import_only("oauth.client_secret", "oauth.client_secret", Text),
        CALLBACK,
        unsupported_field("oauth.redirectUri", "the redirect URI is chosen automatically", ""),
    ],
};

static GOOSE: ClientSchema = ClientSchema {
    format: FileFormat::Yaml,
    roots: &[&["extensions"]],
    dialect: VariableSyntax::Literal,
    headers: Some(VariableSyntax::Braces { defaults: false }),
    fields: &[
        same_name(
            "type",
            Transport { words: &[("stdio", "stdio"), ("streamable_http", "http"), ("sse", "sse")], required: true },
        ),
        two_way("cmd", "command", Text),
        same_name("args", Texts),
        two_way("env_keys", "env", Handed),
        two_way("envs", "env", Pairs),
        two_way("uri", "url", Text),
        same_name("headers", Pairs),
        same_name("timeout", WholeSeconds),
        same_name("enabled", Flag),
        two_way("available_tools", "includeTools", Words),
        ignored_field("name"),
        ignored_field("display_name"),
        ignored_field("description"),
        ignored_field("bundled"),
    ],
};

static ZED: ClientSchema = ClientSchema {
    format: FileFormat::Json,
    roots: &[&["context_servers"]],
    dialect: VariableSyntax::Literal,
    headers: None,
    fields: &[
        same_name("command", Text),
        import_only("command.path", "command", Text),
        import_only("command.args", "args", Texts),
        import_only("command.env", "env", Pairs),
        same_name("args", Texts),
        same_name("env", Pairs),
        same_name("url", Text),
        same_name("headers", Pairs),
        same_name("enabled", Flag),
        ignored_field("source"),
        unsupported_field("settings", "Wharf has no extensions", "set `command` and `args`"),
    ],
};

static WINDSURF: ClientSchema = ClientSchema {
    format: FileFormat::Json,
    roots: MCP_SERVERS_ROOT,
    dialect: VariableSyntax::Editor { inputs: false },
    headers: None,
    fields: &[
        import_only("type", "type", TRANSPORT),
        same_name("command", Text),
        same_name("args", Texts),
        same_name("env", Pairs),
        two_way("serverUrl", "url", Text),
        import_only("url", "url", Text),
        same_name("headers", Pairs),
        two_way("disabled", "enabled", Inverse),
        two_way("disabledTools", "excludeTools", Words),
        unsupported_field("alwaysAllow", RULES_DECIDE, RULES_FIX),
    ],
};
