//! What an entry may be made of on the command line.

use std::path::PathBuf;

use clap::ValueEnum;

/// How a server is reached and kept, said by flags.
#[derive(Debug, clap::Args)]
pub struct Flags {
    /// How it is spoken to; found out when absent
    #[arg(long, short, value_enum, help_heading = "Server")]
    pub transport: Option<Transport>,
    /// Its address: http:// or https://
    #[arg(long, value_name = "URL", conflicts_with_all = ["target", "command"], help_heading = "Server")]
    pub url: Option<String>,
    /// The program that is started
    #[arg(long, value_name = "PROGRAM", conflicts_with = "target", help_heading = "Server")]
    pub command: Option<String>,
    /// An argument of the program; may be repeated
    #[arg(long, value_name = "ARG", allow_hyphen_values = true, help_heading = "Server")]
    pub arg: Vec<String>,
    /// A header of every request: NAME=VALUE or "NAME: VALUE"; may be repeated
    #[arg(long, short = 'H', value_name = "HEADER", help_heading = "Server")]
    pub header: Vec<String>,
    /// A variable of the program: NAME=VALUE, or NAME to hand down your own; may be repeated
    #[arg(long, short, value_name = "NAME[=VALUE]", help_heading = "Server")]
    pub env: Vec<String>,
    /// Where the program runs: a directory, or '${project}' for that of the project it is used in
    #[arg(long, value_name = "DIR", help_heading = "Server")]
    pub cwd: Option<PathBuf>,
    #[command(flatten)]
    pub keeping: Keeping,
    #[command(flatten)]
    pub login: Login,
}

/// How a server is kept.
#[derive(Debug, clap::Args)]
pub struct Keeping {
    /// Whether it is switched on
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub enabled: Option<bool>,
    /// How long a call may go without an answer or progress, in milliseconds
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..))]
    pub request_timeout_ms: Option<u32>,
    /// Allow its tools where no rule says otherwise
    #[arg(long)]
    pub trust: bool,
    /// Use only these tools, names or globs with commas
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub include_tools: Vec<String>,
    /// Do not use these tools, names or globs with commas
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub exclude_tools: Vec<String>,
    /// Start it with its first use instead of at once
    #[arg(long)]
    pub lazy: bool,
    /// For people
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
}

/// How to log in, where that cannot be discovered.
#[derive(Debug, clap::Args)]
#[group(id = "login", multiple = true)]
pub struct Login {
    /// Where people log in
    #[arg(long, value_name = "URL", help_heading = "Login")]
    pub oauth_authorization_url: Option<String>,
    /// Where tokens come from
    #[arg(long, value_name = "URL", help_heading = "Login")]
    pub oauth_token_url: Option<String>,
    /// Where clients are registered
    #[arg(long, value_name = "URL", help_heading = "Login")]
    pub oauth_registration_url: Option<String>,
    /// The client this is
    #[arg(long, visible_alias = "client-id", value_name = "ID", help_heading = "Login")]
    pub oauth_client_id: Option<String>,
    /// What proves it; - asks for it
    #[arg(long, visible_alias = "client-secret", value_name = "SECRET", allow_hyphen_values = true)]
    #[arg(help_heading = "Login")]
    pub oauth_client_secret: Option<String>,
    /// What is asked for, words separated by blanks
    #[arg(long, value_name = "SCOPE", help_heading = "Login")]
    pub oauth_scope: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// A program that is started
    Stdio,
    /// Streamable HTTP
    Http,
    /// HTTP+SSE, of 2024-11-05
    Sse,
}
