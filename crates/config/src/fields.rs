//! All configuration keys. The parser, the JSON schema and the reference page are generated from these tables.

/// A configuration key: its type and its description.
#[derive(Debug, Clone, Copy)]
pub struct ConfigField {
    /// Name of the key.
    pub name: &'static str,
    /// Alternative names that are accepted.
    pub also: &'static [&'static str],
    /// Type of the value.
    pub kind: ConfigFieldKind,
    /// Description: one sentence, in Markdown.
    pub about: &'static str,
}

/// Type of a configuration value.
#[derive(Debug, Clone, Copy)]
pub enum ConfigFieldKind {
    /// A string.
    Text,
    /// A string with references such as `${VAR}`.
    Template,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// A boolean.
    Flag,
    /// An integer of at least this value.
    Count(u64),
    /// An integer number of milliseconds.
    Millis,
    /// A port number.
    Port,
    /// A list of strings.
    Texts,
    /// A list of strings with references.
    Templates,
    /// A map of strings with references.
    TemplateMap,
    /// A map of milliseconds.
    MillisMap,
    /// A boolean, or an object with these keys.
    OffOr(&'static [ConfigField]),
    /// An object with these keys.
    Object(&'static [ConfigField]),
    /// Servers by id.
    Servers,
    /// A list of permission rules.
    Rules,
    /// A map of objects with these keys.
    Objects(&'static [ConfigField]),
}

const fn field(name: &'static str, kind: ConfigFieldKind, about: &'static str) -> ConfigField {
    ConfigField { name, also: &[], kind, about }
}

impl ConfigField {
    const fn also(mut self, also: &'static [&'static str]) -> Self {
        self.also = also;
        self
    }

    /// Reports whether this is the key's name or one of its alternatives.
    pub fn is_called(&self, key: &str) -> bool {
        self.name == key || self.also.contains(&key)
    }
}

/// Keys of the backoff settings.
pub const BACKOFF: &[ConfigField] = &[
    field("attempts", ConfigFieldKind::Count(1), "Attempts in a row before the server is given up; 5."),
    field("baseMs", ConfigFieldKind::Millis, "The longest wait before the second attempt; it doubles with each. 500."),
    field("maxMs", ConfigFieldKind::Millis, "The longest wait of all; 60000."),
];

/// Keys of the login settings.
pub const OAUTH: &[ConfigField] = &[
    field("authorization_url", ConfigFieldKind::Template, "Where people log in.").also(&["authorizationUrl"]),
    field("token_url", ConfigFieldKind::Template, "Where tokens come from.").also(&["tokenUrl"]),
    field("registration_url", ConfigFieldKind::Template, "Where clients are registered.").also(&["registrationUrl"]),
    field("device_url", ConfigFieldKind::Template, "Where a login on another device begins."),
    field(
        "issuer",
        ConfigFieldKind::Template,
        "What the authorization server calls itself, instead of the one that the server names.",
    ),
    field("client_id", ConfigFieldKind::Template, "The client this is.").also(&["clientId"]),
    field("client_secret", ConfigFieldKind::Template, "What proves it.").also(&["clientSecret"]),
    field(
        "client_metadata_url",
        ConfigFieldKind::Template,
        "The address of a document that describes the client; it is the client's id where such are taken.",
    )
    .also(&["clientMetadataUrl"]),
    field("scope", ConfigFieldKind::Template, "What is asked for, words separated by blanks."),
    field(
        "callback_port",
        ConfigFieldKind::Port,
        "The port a login comes back to, at `/callback`; any free one when absent.",
    )
    .also(&["callbackPort"]),
    field(
        "account",
        ConfigFieldKind::Text,
        "Which of several accounts at this server is used; `--account` goes before it.",
    ),
    field(
        "grant",
        ConfigFieldKind::Choice(&["person", "client_credentials", "enterprise", "workload"]),
        "Who logs in: a person, the client itself, a person for whom an identity provider vouches, or this machine; \
         `person`.",
    ),
    field(
        "private_key",
        ConfigFieldKind::Template,
        "For `client_credentials`: the key the client signs with, PKCS #8 in PEM.",
    ),
    field("private_key_file", ConfigFieldKind::Template, "The same, in a file."),
    field("signing_algorithm", ConfigFieldKind::Template, "How it signs; `ES256`."),
    field(
        "idp_token_url",
        ConfigFieldKind::Template,
        "For `enterprise`: where the identity provider exchanges tokens.",
    ),
    field("idp_client_id", ConfigFieldKind::Template, "The client at the identity provider."),
    field("idp_client_secret", ConfigFieldKind::Template, "What proves it."),
    field("id_token", ConfigFieldKind::Template, "The person's identity token."),
    field("id_token_file", ConfigFieldKind::Template, "The same, in a file that is read whenever it is needed."),
    field("assertion", ConfigFieldKind::Template, "For `workload`: the token of this machine."),
    field("assertion_file", ConfigFieldKind::Template, "The same, in a file that is read whenever it is needed."),
    field(
        "dpop",
        ConfigFieldKind::Choice(&["auto", "always", "never"]),
        "Whether tokens are bound to a key of ours; `auto` is where the server says so.",
    ),
];

/// Keys of a server.
pub const SERVER: &[ConfigField] = &[
    field(
        "type",
        ConfigFieldKind::Text,
        "`stdio`, `http` or `sse`; inferred when absent: `command` means stdio, `url` whichever form of HTTP the server \
         turns out to speak.",
    )
    .also(&["transport"]),
    field("command", ConfigFieldKind::Template, "The program to start: a path, or a name looked up in `PATH`. Never a shell line."),
    field("args", ConfigFieldKind::Templates, "Its arguments, each handed over as it is."),
    field("cwd", ConfigFieldKind::Template, "Where it runs, relative to its file; `${project}` is the project's directory. When absent: the project's directory for a project's entry, a private one for every other."),
    field("env", ConfigFieldKind::TemplateMap, "Variables it gets besides the short list every server gets."),
    field("envVars", ConfigFieldKind::Texts, "Names of your own variables that are handed down.").also(&["env_vars"]),
    field("envFile", ConfigFieldKind::Template, "A file of `NAME=value` lines with more variables; `env` goes before it."),
    field("inheritEnv", ConfigFieldKind::Flag, "Hands the whole environment down instead of the short list."),
    field("url", ConfigFieldKind::Template, "The address of a server that is dialled."),
    field("httpUrl", ConfigFieldKind::Template, "The same, for Streamable HTTP only."),
    field("headers", ConfigFieldKind::TemplateMap, "Headers sent with every request."),
    field("enabled", ConfigFieldKind::Flag, "`false` switches it off; alone in an entry, it switches off the one of a lower layer."),
    field("disabled", ConfigFieldKind::Flag, "The opposite of `enabled`, as other programs spell it."),
    field("timeout", ConfigFieldKind::Millis, "How long a call may go without an answer or progress; 30000.")
        .also(&["request_timeout_ms", "requestTimeoutMs"]),
    field("startupTimeoutMs", ConfigFieldKind::Millis, "How long it may take to get ready; 60000."),
    field("toolTimeouts", ConfigFieldKind::MillisMap, "The same as `timeout` for single tools, by name or glob."),
    field("trust", ConfigFieldKind::Flag, "Allows its tools where no rule says otherwise."),
    field("includeTools", ConfigFieldKind::Texts, "The tools that are used, by name or glob; all of them when absent."),
    field("excludeTools", ConfigFieldKind::Texts, "Tools that are not used, by name or glob; stronger than `includeTools`."),
    field("debug", ConfigFieldKind::Flag, "Shows its messages, as `--debug` does for all."),
    field("lazy", ConfigFieldKind::Flag, "Starts it with its first use instead of at once."),
    field("reconnect", ConfigFieldKind::OffOr(BACKOFF), "What happens when it is lost: `false` is nothing."),
    field("maxConcurrent", ConfigFieldKind::Count(1), "Calls it is given at once; 1 makes them one after the other."),
    field("healthCheckMs", ConfigFieldKind::Millis, "Asks it whether it is there, this long after it was last used."),
    field("idleStopMs", ConfigFieldKind::Millis, "Stops a lazy server this long after it was last used; 600000."),
    field("cacheTtlMs", ConfigFieldKind::Millis, "Keeps results of tools that say they only read, this long."),
    field("oauth", ConfigFieldKind::Object(OAUTH), "How to log in, where it cannot be discovered."),
    field("proxy", ConfigFieldKind::Template, "The proxy it is reached through; none is taken from the environment."),
    field("ca", ConfigFieldKind::Templates, "Files of certificates trusted beside the system's own, in PEM."),
    field("clientCert", ConfigFieldKind::Template, "A file with your own certificate and its key, in PEM."),
    field(
        "mirrorArguments",
        ConfigFieldKind::Flag,
        "Repeats arguments in headers where a tool's schema says so; `false` withholds such tools.",
    ),
    field("name", ConfigFieldKind::Text, "Its id, where servers stand in a list (`WHARF_MCP_SERVERS`)."),
    field("description", ConfigFieldKind::Text, "For people; nothing reads it."),
];

const GLOBAL: &[ConfigField] = &[
    field("timeout", ConfigFieldKind::Millis, "The `timeout` of servers that have none of their own."),
    field("debug", ConfigFieldKind::Flag, "The `debug` of all servers."),
];

/// Keys under `mcp`.
pub const MCP: &[ConfigField] = &[
    field("enabled", ConfigFieldKind::Flag, "`false` turns the servers of this file off."),
    field(
        "servers",
        ConfigFieldKind::Servers,
        "The servers, by their ids: 1 to 64 of `A-Z`, `a-z`, `0-9`, `_` and `-`.",
    ),
    field("globalSettings", ConfigFieldKind::Object(GLOBAL), "What holds for all of them."),
];

/// Keys of a permission rule.
pub const RULE: &[ConfigField] = &[
    field("tool", ConfigFieldKind::Text, "Which tools: `mcp__<server>__<tool>`, a glob."),
    field("pattern", ConfigFieldKind::Text, "Which arguments: `key=glob`, or a glob over every value."),
    field("action", ConfigFieldKind::Choice(&["allow", "ask", "deny"]), "What is done about a call of them."),
    field(
        "definedIn",
        ConfigFieldKind::Text,
        "The file that defines the server, if that is not your own: its absolute path.",
    ),
];

/// Keys that are valid in every file.
pub const FILE: &[ConfigField] = &[
    field(
        "mcpServers",
        ConfigFieldKind::Servers,
        "The servers, by their ids: 1 to 64 of `A-Z`, `a-z`, `0-9`, `_` and `-`.",
    ),
    field("mcp", ConfigFieldKind::Object(MCP), "The same in the other shape, with `version` 1."),
    field("version", ConfigFieldKind::Count(1), "The version of the shape with `mcp`: 1."),
    field("expandEnv", ConfigFieldKind::Flag, "`false` leaves `${VAR}` in this file as it stands."),
    field(
        "permissions",
        ConfigFieldKind::Rules,
        "Rules on calls of tools; of a project's file only those that deny or ask. See permissions.md.",
    ),
    field("$schema", ConfigFieldKind::Text, "Where editors find the schema of this file; nothing reads it."),
    field("schema", ConfigFieldKind::Count(1), "The version of this kind of file: 1."),
];

/// Keys of a model provider.
pub const PROVIDER: &[ConfigField] = &[
    field(
        "format",
        ConfigFieldKind::Choice(&["anthropic", "chat", "responses"]),
        "What its API speaks: Anthropic's messages, OpenAI's chat completions (as most local servers do) or responses.",
    ),
    field("baseUrl", ConfigFieldKind::Template, "Where its API begins, with or without `/v1`."),
    field(
        "apiKey",
        ConfigFieldKind::Template,
        "What opens it, best written `${VAR}` or `${secret:NAME}`; local servers need none.",
    ),
    field("headers", ConfigFieldKind::TemplateMap, "Headers sent with every request."),
    field("model", ConfigFieldKind::Text, "The model that is used where only the provider is named."),
    field("maxTokens", ConfigFieldKind::Count(1), "The most tokens of an answer, thinking included."),
    field("contextTokens", ConfigFieldKind::Count(1024), "Tokens that fit into the model's context."),
    field(
        "effort",
        ConfigFieldKind::Choice(&["low", "medium", "high"]),
        "How much it thinks; left to the model when absent.",
    ),
    field("proxy", ConfigFieldKind::Template, "The proxy it is reached through; none is taken from the environment."),
    field("ca", ConfigFieldKind::Templates, "Files of certificates trusted beside the system's own, in PEM."),
];

/// Keys that are valid in the user's own files only.
pub const USER: &[ConfigField] = &[
    field(
        "toolNames",
        ConfigFieldKind::Choice(&[
            "mcp__<server>__<tool>",
            "mcp_<server>_<slug>_<hash8>",
            "<tool>@<server>",
            "<server>::<tool>",
            "mcp_<server>_<tool>",
        ]),
        "How tools are named for people; a model is given a form it can take.",
    ),
    field("healthCheckMs", ConfigFieldKind::Millis, "The `healthCheckMs` of servers that have none of their own."),
    field(
        "resultLimit",
        ConfigFieldKind::Count(256),
        "Bytes of a result that an agent is given; the rest goes to a file.",
    ),
    field("cacheTtlMs", ConfigFieldKind::Millis, "The `cacheTtlMs` of servers that have none of their own."),
    field("reconnect", ConfigFieldKind::Object(BACKOFF), "The `reconnect` of servers that have none of their own."),
    field("tokenStore", ConfigFieldKind::Choice(&["auto", "file", "keyring"]), "Where tokens are kept."),
    field(
        "secretCommand",
        ConfigFieldKind::Texts,
        "The program that is asked for `${secret:NAME}`, with `{name}` in its arguments; its output is the secret.",
    ),
    field("model", ConfigFieldKind::Text, "The model of the agent: `provider/model`, or either alone. See agent.md."),
    field(
        "providers",
        ConfigFieldKind::Objects(PROVIDER),
        "How models are reached, by a name of your own or a built-in one.",
    ),
];
