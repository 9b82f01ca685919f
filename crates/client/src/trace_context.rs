//! W3C trace context of calls: the `traceparent` and `tracestate` members of `_meta`.

use std::fmt::Write as _;

use wharf_spec::Environment;

/// Maximum bytes of a trace state.
const MAX_STATE_BYTES: usize = 512;

/// The trace that calls belong to, from the variables `TRACEPARENT` and `TRACESTATE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceContext {
    /// The trace id, 32 hexadecimal digits.
    trace: String,
    /// The flags, 2 hexadecimal digits.
    flags: String,
    state: Option<String>,
}

impl TraceContext {
    /// Reads the trace context of an environment. Returns `None` without a valid `TRACEPARENT`.
    pub fn from_environment(around: &Environment) -> Option<Self> {
        let parent = around.var("TRACEPARENT")?.to_str()?;
        let state = around.var("TRACESTATE").and_then(|state| state.to_str());
        Self::parse(parent, state)
    }

    fn parse(parent: &str, state: Option<&str>) -> Option<Self> {
        let parts: Vec<&str> = parent.trim().split('-').collect();
        let [version, trace, span, flags] = parts[..] else { return None };
        let is_id = |text: &str, length: usize| {
            text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_set = |id: &str| id.bytes().any(|byte| byte != b'0');
        let fits = version == "00" && is_id(trace, 32) && is_id(span, 16) && is_id(flags, 2);
        let is_plain = |byte: u8| (byte.is_ascii_graphic() || byte == b' ') && !matches!(byte, b'"' | b'\\');
        let state =
            state.filter(|state| !state.is_empty() && state.len() <= MAX_STATE_BYTES && state.bytes().all(is_plain));
        (fits && is_set(trace) && is_set(span)).then(|| Self {
            trace: trace.to_owned(),
            flags: flags.to_owned(),
            state: state.map(str::to_owned),
        })
    }

    /// Returns the members of `_meta` for one call, which is a span of its own.
    pub fn meta_members(&self) -> String {
        let span = getrandom::u64().unwrap_or_default().max(1);
        let mut members = format!(r#""traceparent":"00-{}-{span:016x}-{}""#, self.trace, self.flags);
        if let Some(state) = &self.state {
            let _ = write!(members, r#","tracestate":"{state}""#);
        }
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn each_call_is_a_span_of_the_trace() {
        let trace = TraceContext::parse(PARENT, Some("a=1,b=2")).unwrap();
        let (one, other) = (trace.meta_members(), trace.meta_members());
        assert_ne!(one, other);
        assert!(one.starts_with(r#""traceparent":"00-0af7651916cd43dd8448eb211c80319c-"#), "{one}");
        assert!(one.ends_with(r#"-01","tracestate":"a=1,b=2""#) && !one.contains("b7ad6b7169203331"), "{one}");
    }

    #[test]
    fn malformed_context_is_ignored() {
        for parent in [
            "",
            "00-0-0-01",
            "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
        ] {
            assert_eq!(TraceContext::parse(parent, None), None, "{parent}");
        }
        assert_eq!(TraceContext::parse(PARENT, Some("a=\"\u{1b}")).unwrap().state, None);
    }
}
