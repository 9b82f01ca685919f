//! Command-line flags that describe an entry.

use std::path::PathBuf;

use clap::ValueEnum;

/// Connection and settings of a server, given by flags.
#[derive(Debug, Clone, clap::Args)]
pub struct AddFlags {
    /// Transport; detected if not given
    #[arg(long, short, value_enum, help_heading = "Server")]
    pub transport: Option<TransportFlag>,
    /// URL of the server: http:// or https://
    #[arg(long, value_name = "URL", conflicts_with_all = ["target", "command"], help_heading = "Server")]
    pub url: Option<String>,
    /// Program to start
    #[arg(long, value_name = "PROGRAM", conflicts_with = "target", help_heading = "Server")]
    pub command: Option<String>,
    /// Argument of the program; repeatable
    #[arg(long, value_name = "ARG", allow_hyphen_values = true, help_heading = "Server")]
    pub arg: Vec<String>,
    /// Header to send with every request: NAME=VALUE or "NAME: VALUE"; repeatable
    #[arg(long, short = 'H', value_name = "HEADER", help_heading = "Server")]
    pub header: Vec<String>,
    /// Environment variable of the program: NAME=VALUE, or NAME to pass on your own; repeatable
    #[arg(long, short, value_name = "NAME[=VALUE]", help_heading = "Server")]
    pub env: Vec<String>,
    /// Working directory of the program: a path, or '${project}' for the current project's directory
    #[arg(long, value_name = "DIR", help_heading = "Server")]
    pub cwd: Option<PathBuf>,
    #[command(flatten)]
    pub setting_flags: ServerSettingFlags,
    #[command(flatten)]
    pub login: OauthFlags,
}

/// Settings of a server.
#[derive(Debug, Clone, clap::Args)]
pub struct ServerSettingFlags {
    /// Store the server enabled (true) or disabled (false)
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub enabled: Option<bool>,
    /// Timeout for a response or progress update of a call, in milliseconds
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..))]
    pub request_timeout_ms: Option<u32>,
    /// Allow its tools if no rule says otherwise
    #[arg(long)]
    pub trust: bool,
    /// Use only these tools: comma-separated names or globs
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub include_tools: Vec<String>,
    /// Exclude these tools: comma-separated names or globs
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub exclude_tools: Vec<String>,
    /// Start the server on first use
    #[arg(long)]
    pub lazy: bool,
    /// Description for people
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
}

/// OAuth parameters for servers without discovery.
#[derive(Debug, Clone, clap::Args)]
#[group(id = "login", multiple = true)]
pub struct OauthFlags {
    /// Authorization endpoint
    #[arg(long, value_name = "URL", help_heading = "Login")]
    pub oauth_authorization_url: Option<String>,
    /// Token endpoint
    #[arg(long, value_name = "URL", help_heading = "Login")]
    pub oauth_token_url: Option<String>,
    /// Client registration endpoint
    #[arg(long, value_name = "URL", help_heading = "Login")]
    pub oauth_registration_url: Option<String>,
    /// Client id
    #[arg(long, visible_alias = "client-id", value_name = "ID", help_heading = "Login")]
    pub oauth_client_id: Option<String>,
    /// Client secret; - prompts for it
    #[arg(long, visible_alias = "client-secret", value_name = "SECRET", allow_hyphen_values = true)]
    #[arg(help_heading = "Login")]
    pub oauth_client_secret: Option<String>,
    /// Scopes to request, separated by spaces
    #[arg(long, value_name = "SCOPE", help_heading = "Login")]
    pub oauth_scope: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TransportFlag {
    /// A program started as a child process
    Stdio,
    /// Streamable HTTP
    Http,
    /// HTTP+SSE of revision 2024-11-05
    Sse,
}
