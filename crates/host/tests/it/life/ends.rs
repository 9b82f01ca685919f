//! How a host ends, and its servers and calls with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use wharf::{Host, HostError, LocalFactory, LocalServer};
use wharf_client::{BoxedFuture, ServerEnd, Workers};

use crate::fixture::{Act, Fake, call, host_of, scripted, settings, until};

/// Counts the servers that run.
struct Counted {
    server: Box<dyn LocalServer>,
    running: Running,
}

struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl LocalServer for Counted {
    fn serve(self: Box<Self>, end: ServerEnd, workers: Workers) -> BoxedFuture<()> {
        let Self { server, running } = *self;
        let serving = server.serve(end, workers);
        Box::pin(async move {
            let _running = running;
            serving.await;
        })
    }
}

fn counted(make: LocalFactory, running: &Arc<AtomicUsize>) -> LocalFactory {
    let running = Arc::clone(running);
    Arc::new(move || {
        running.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(Counted { server: make()?, running: Running(Arc::clone(&running)) }))
    })
}

/// A host whose server has been given calls that it will not answer.
async fn busy(calls: usize) -> (Host, Arc<AtomicUsize>, Vec<tokio::task::JoinHandle<Result<String, HostError>>>) {
    let running = Arc::default();
    let host = host_of(settings(), counted(Fake::new("one").factory(), &running)).await;
    host.wait_until_settled().await;
    let under_way: Vec<_> = (0..calls)
        .map(|_| {
            let host = host.clone();
            tokio::spawn(async move { call(&host, "never").await })
        })
        .collect();
    until(|| host.status_of("one").unwrap().in_flight == calls).await;
    assert_eq!(running.load(Ordering::SeqCst), 1);
    (host, running, under_way)
}

#[tokio::test(start_paused = true)]
async fn closing_ends_calls_and_servers() {
    let (host, running, calls) = busy(200).await;
    let began = Instant::now();
    host.close().await;
    for ended in calls {
        let ended = ended.await.unwrap();
        assert!(matches!(ended, Err(HostError::Call { .. } | HostError::Unavailable { .. })), "{ended:?}");
    }
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(running.load(Ordering::SeqCst), 0);
    assert!(matches!(call(&host, "who").await, Err(HostError::Closed)));
    assert!(matches!(host.connect("one").await, Err(HostError::Closed)));
    assert!(host.status().is_empty());
    assert_eq!(host.set_servers(Vec::new()).await, wharf::ServerSetChanges::default());
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn dropping_the_host_ends_its_servers() {
    let (host, running, calls) = busy(3).await;
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    for call in calls {
        assert!(call.await.unwrap_err().is_cancelled());
    }
    drop(host);
    until(|| running.load(Ordering::SeqCst) == 0).await;
}

/// A check that is under way does not keep the server.
#[tokio::test(start_paused = true)]
async fn dropping_the_host_ends_a_server_in_health_check() {
    let running = Arc::default();
    let mut kept = settings();
    kept.health_check = Some(Duration::from_secs(5));
    let met = Arc::new(AtomicUsize::new(0));
    let deaf = scripted("one", move |asked| match asked.method {
        "server/discover" if met.fetch_add(1, Ordering::SeqCst) > 0 => Act::Nothing,
        _ => Act::Ordinary,
    });
    let host = host_of(kept, counted(deaf, &running)).await;
    until(|| host.connection("one").is_ok()).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    let began = Instant::now();
    drop(host);
    until(|| running.load(Ordering::SeqCst) == 0).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}
