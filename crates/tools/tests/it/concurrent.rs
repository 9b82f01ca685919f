use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use wharf_tools::{
    BoxFuture, GateDecision, Registry, RegistryCallError, RegistrySnapshot, Tool, ToolDescription, ToolError,
    ToolInvocation, ToolOutcome,
};

use crate::fixture::{Sign, Told, call};

const PROVIDERS: usize = 4;
const CALLERS: usize = 4;
const CALLS: usize = 1_500;

/// How the calls of one caller ended.
#[derive(Default)]
struct Ended {
    answered: usize,
    unknown: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_call_ends_once_during_concurrent_changes() {
    let gate = Told::new(|_| GateDecision::Pass);
    let registry = Arc::new(Registry::new(gate.clone()));
    let reached = Arc::new(AtomicUsize::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    registry.register(Sign::new("", "steady", "steady"));
    (0..PROVIDERS).for_each(|provider| registry.replace_provider(&format!("p{provider}"), pair(provider, 0, &reached)));

    let changing: Vec<_> = (0..PROVIDERS)
        .map(|provider| {
            let (registry, reached, stop) = (registry.clone(), reached.clone(), stop.clone());
            tokio::task::spawn_blocking(move || keep_changing(&registry, provider, &reached, &stop))
        })
        .collect();
    let calling: Vec<_> = (0..CALLERS).map(|caller| tokio::spawn(keep_calling(registry.clone(), caller))).collect();

    let mut all = Ended::default();
    for caller in calling {
        let ended = caller.await.unwrap();
        all.answered += ended.answered;
        all.unknown += ended.unknown;
    }
    stop.store(true, Ordering::SeqCst);
    for provider in changing {
        assert!(provider.await.unwrap() > 0, "every provider changed something meanwhile");
    }
    assert_eq!(all.answered + all.unknown, CALLERS * CALLS);
    assert_eq!(gate.count(), all.answered, "the gate sees every call that has a tool, once");
    assert_eq!(reached.load(Ordering::SeqCst) + CALLERS * CALLS / 10, all.answered, "and so does the tool");
}

/// Replaces its two tools over and over, and has a third one come and go.
fn keep_changing(registry: &Registry, provider: usize, reached: &Arc<AtomicUsize>, stop: &AtomicBool) -> usize {
    let mut changes = 0;
    while !stop.load(Ordering::SeqCst) || changes == 0 {
        changes += 1;
        registry.replace_provider(&format!("p{provider}"), pair(provider, changes, reached));
        registry.register(counted(provider, "c", changes, reached));
        assert!(registry.remove(&format!("p{provider}_c")));
        std::thread::yield_now();
    }
    changes
}

/// Two tools of one generation, which are only ever seen together.
fn pair(provider: usize, generation: usize, reached: &Arc<AtomicUsize>) -> Vec<Arc<dyn Tool>> {
    ["a", "b"].map(|letter| counted(provider, letter, generation, reached)).to_vec()
}

fn counted(provider: usize, letter: &str, generation: usize, reached: &Arc<AtomicUsize>) -> Arc<dyn Tool> {
    let text = format!("p{provider}_{letter} {generation}");
    let sign = Sign::new(&format!("p{provider}"), &format!("p{provider}_{letter}"), &text);
    Arc::new(Counted { sign, reached: reached.clone() })
}

async fn keep_calling(registry: Arc<Registry>, caller: usize) -> Ended {
    let mut ended = Ended::default();
    for n in 0..CALLS {
        let name = match n % 10 {
            0 => "steady".to_owned(),
            n => format!("p{}_{}", (caller + n) % PROVIDERS, ["a", "b", "c"][n % 3]),
        };
        match registry.call(&name, call()).await {
            Ok(outcome) => {
                let text = outcome.blocks[0].as_text().into_owned();
                assert_eq!(text.split(' ').next(), Some(name.as_str()), "answered by another tool");
                ended.answered += 1;
            }
            Err(RegistryCallError::Unknown { .. }) => {
                assert!(name.ends_with("_c"), "{name} is always there");
                ended.unknown += 1;
            }
            Err(failure) => panic!("{failure}"),
        }
        check_snapshot(&registry.snapshot());
    }
    ended
}

/// A snapshot is one moment: both tools of a pair are of the same generation, and everything is found that is listed.
fn check_snapshot(snapshot: &RegistrySnapshot) {
    let tools: Vec<_> = snapshot.iter().map(|tool| tool.description().clone()).collect();
    assert!(tools.windows(2).all(|pair| pair[0].name < pair[1].name));
    for provider in 0..PROVIDERS {
        let own = format!("p{provider}");
        let pair = tools.iter().filter(|tool| tool.provider() == own && !tool.name.ends_with("_c"));
        let generations: Vec<_> = pair.map(|tool| tool.text.split(' ').nth(1)).collect();
        assert_eq!(generations.len(), 2);
        assert_eq!(generations[0], generations[1]);
    }
    assert_eq!(snapshot.len(), tools.len());
    assert_eq!(snapshot.withheld(), []);
}

/// Counts its calls together with those of others.
struct Counted {
    sign: Arc<Sign>,
    reached: Arc<AtomicUsize>,
}

impl Tool for Counted {
    fn description(&self) -> &Arc<ToolDescription> {
        self.sign.description()
    }

    fn call(&self, call: ToolInvocation) -> BoxFuture<'_, Result<ToolOutcome, ToolError>> {
        self.reached.fetch_add(1, Ordering::SeqCst);
        self.sign.call(call)
    }
}
