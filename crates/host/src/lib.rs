//! Many MCP servers as one, their tools under rules: the library to embed.

#![warn(missing_docs)]
