//! Handlers that panic, block, call themselves, answer too much, or are left behind.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use rmcp::model::{InitializeRequestParams, InitializeResult};
use rmcp::{ErrorData, ServerHandler};
use tokio::sync::{Barrier, mpsc};
use tokio::task::JoinSet;
use wharf_client::{
    CallError, ConnectCause, ConnectOptions, Connection, NegotiationMode, RequestOptions, connect_local,
};
use wharf_rmcp::RmcpServer;
use wharf_wire::ToolResult;

use crate::handler::{BOTH, Context, NOTE, TRAP, arguments, call, connected, echo, said, server, text_of, told};

#[tokio::test]
async fn panicking_tool_is_an_error_and_the_server_continues() {
    for negotiation in BOTH {
        let touchy = server(|request, _context| async move {
            assert_ne!(request.name, "mine", "stepped on it");
            Ok(said("fine"))
        });
        let connection = connected(touchy, negotiation).await;
        let result = call(&connection, "mine", "").await.unwrap();
        assert!(result.is_error && told(&result).contains("stepped on it"), "{}", result.raw.as_str());
        assert_eq!(result.raw.as_str().contains("resultType"), negotiation == NegotiationMode::Automatic);
        assert_eq!(told(&call(&connection, "field", "").await.unwrap()), "fine");
    }
}

#[tokio::test]
async fn panicking_resource_handler_is_an_error() {
    let connection = connected(echo(), NegotiationMode::Automatic).await;
    let refused = connection.read_resource(TRAP, RequestOptions::default()).await;
    assert!(matches!(&refused, Err(CallError::ErrorResponse(error)) if error.message.contains("trap")), "{refused:?}");
    connection.read_resource(NOTE, RequestOptions::default()).await.unwrap();
}

#[tokio::test]
async fn blocking_handler_does_not_delay_other_calls() {
    let (began, mut begun) = mpsc::unbounded_channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let blocking = server(move |request, _context| {
        let (began, released) = (began.clone(), released.clone());
        async move {
            if request.name == "block" {
                began.send(()).unwrap();
                released.lock().unwrap().recv().unwrap();
            }
            Ok(said(text_of(&request)))
        }
    });
    let mut options = ConnectOptions::default();
    options.limits.local_stall = Duration::from_millis(10);
    let connection = connect_local(blocking, options).await.unwrap();
    let caller = connection.clone();
    let blocked = tokio::spawn(async move { call(&caller, "block", "at last").await });
    begun.recv().await.unwrap();
    // Waits behind the one that blocks, until that one's thread is set aside; asked again, it finds another one.
    let mut answer = quickly(&connection).await;
    for _ in 0..50 {
        if answer.is_ok() {
            break;
        }
        answer = quickly(&connection).await;
    }
    assert_eq!(told(&answer.unwrap()), "hi");
    assert!(!blocked.is_finished());
    release.send(()).unwrap();
    assert_eq!(told(&blocked.await.unwrap().unwrap()), "at last");
}

async fn quickly(connection: &Connection) -> Result<ToolResult, CallError> {
    let options = RequestOptions::default().timeout(Duration::from_millis(100));
    connection.call_tool("echo", &arguments("hi"), options).await
}

/// A server whose tool calls itself through its own connection, and says what came of that.
fn recursive(handlers: Arc<AtomicUsize>) -> (RmcpServer<crate::handler::Handler>, Arc<OnceLock<Connection>>) {
    let itself = Arc::new(OnceLock::<Connection>::new());
    let connection = itself.clone();
    let server = server(move |_request, _context| {
        let (connection, handlers) = (connection.clone(), handlers.clone());
        async move {
            handlers.fetch_add(1, Ordering::SeqCst);
            let deeper = Box::pin(call(connection.get().unwrap(), "deeper", "")).await;
            Ok(match deeper {
                Ok(result) => said(told(&result)),
                Err(error) => said(error.to_string()),
            })
        }
    });
    (server, itself)
}

#[tokio::test]
async fn recursive_calls_are_limited_to_depth_eight() {
    let handlers = Arc::new(AtomicUsize::new(0));
    let (server, itself) = recursive(handlers.clone());
    let connection = connected(server, NegotiationMode::Automatic).await;
    let _ = itself.set(connection.clone());
    let result = call(&connection, "deeper", "").await.unwrap();
    assert_eq!(told(&result), CallError::TooDeep(8).to_string());
    assert_eq!(handlers.load(Ordering::SeqCst), 8);
    connection.close().await;
}

#[tokio::test]
async fn nested_calls_need_no_concurrency_permit() {
    const TURNS: usize = 64;
    let itself = Arc::new(OnceLock::<Connection>::new());
    let (inner, all_in) = (itself.clone(), Arc::new(Barrier::new(TURNS)));
    let nested = server(move |request, _context| {
        let (inner, all_in) = (inner.clone(), all_in.clone());
        async move {
            if request.name == "outer" {
                all_in.wait().await;
                call(inner.get().unwrap(), "inner", "").await.unwrap();
            }
            Ok(said("done"))
        }
    });
    let connection = connected(nested, NegotiationMode::Automatic).await;
    let _ = itself.set(connection.clone());
    let mut calls = JoinSet::new();
    for _ in 0..TURNS {
        let caller = connection.clone();
        calls.spawn(async move { told(&call(&caller, "outer", "").await.unwrap()).to_owned() });
    }
    assert!(calls.join_all().await.iter().all(|answer| answer == "done"));
    connection.close().await;
}

#[tokio::test]
async fn closed_connection_fails_calls_in_flight_and_ends_handlers() {
    let (events, mut happened) = mpsc::unbounded_channel();
    let waiting = server(move |_request, context: Context| {
        let events = events.clone();
        async move {
            events.send("began").unwrap();
            // Heard of the end either way: its token is cancelled, or its future dropped.
            let _left = Left(events);
            context.ct.cancelled().await;
            Ok(said("too late"))
        }
    });
    let connection = connected(waiting, NegotiationMode::Automatic).await;
    let caller = connection.clone();
    let task = tokio::spawn(async move { call(&caller, "wait", "").await });
    assert_eq!(happened.recv().await, Some("began"));
    connection.close().await;
    let error = task.await.unwrap().unwrap_err();
    assert!(error.disconnect_report().is_some(), "{error}");
    assert_eq!(happened.recv().await, Some("left"));
    assert!(matches!(call(&connection, "more", "").await, Err(CallError::RetryableDisconnect(_))));
}

struct Left(mpsc::UnboundedSender<&'static str>);

impl Drop for Left {
    fn drop(&mut self) {
        let _ = self.0.send("left");
    }
}

#[tokio::test]
async fn result_over_the_limit_fails_its_own_call() {
    let generous = server(|request, _context| async move { Ok(said("x".repeat(request.name.len() * 4096))) });
    let mut options = ConnectOptions::default();
    options.limits.max_message = 32 << 10;
    let connection = connect_local(generous, options).await.unwrap();
    let outcome = call(&connection, "much too much", "").await;
    assert!(matches!(outcome, Err(CallError::TooLarge { limit: 32768 })), "{outcome:?}");
    assert_eq!(told(&call(&connection, "fine", "").await.unwrap()).len(), 4 * 4096);
}

#[tokio::test]
async fn failed_handler_startup_is_a_connect_error() {
    struct Shy;
    impl ServerHandler for Shy {
        async fn initialize(
            &self,
            _request: InitializeRequestParams,
            _context: Context,
        ) -> Result<InitializeResult, ErrorData> {
            Err(ErrorData::internal_error("not today", None))
        }
    }
    struct Startled;
    impl ServerHandler for Startled {
        async fn discover(&self, _context: Context) -> Result<rmcp::model::DiscoverResult, ErrorData> {
            panic!("boo")
        }

        async fn initialize(
            &self,
            _request: InitializeRequestParams,
            _context: Context,
        ) -> Result<InitializeResult, ErrorData> {
            panic!("boo")
        }
    }
    struct Versionless;
    impl ServerHandler for Versionless {
        fn supported_protocol_versions(&self) -> std::borrow::Cow<'static, [rmcp::model::ProtocolVersion]> {
            panic!("none")
        }

        async fn initialize(
            &self,
            _request: InitializeRequestParams,
            _context: Context,
        ) -> Result<InitializeResult, ErrorData> {
            Ok(ServerHandler::get_info(self))
        }
    }
    let mut handshake = ConnectOptions::default();
    handshake.negotiation = NegotiationMode::Handshake;
    let error = connect_local(RmcpServer::new(Shy), handshake.clone()).await.err().unwrap();
    assert!(format!("{error:?}").contains("not today"), "{error:?}");
    let error = connect_local(RmcpServer::new(Startled), ConnectOptions::default()).await.err().unwrap();
    assert!(format!("{error:?}").contains("boo"), "{error:?}");
    // This one panics outside of any request.
    let error = connect_local(RmcpServer::new(Versionless), handshake).await.err().unwrap();
    assert!(matches!(error.cause, ConnectCause::Gone(_)), "{error:?}");
}
