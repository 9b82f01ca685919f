//! The reference server of everything, unchanged: what it has that our own servers have not, or have otherwise.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use wharf_client::{ClientServices, Direction, Event, Started, TaskOptions};
use wharf_wire::{Content, Elicitation, ElicitationResponse, FieldKind, Interest, LogLevel, Task};

use crate::crew::{Hasty, Hold, Log, Model, Person, value};
use crate::peer::{raw, text};
use crate::quay::{Visit, Wire, each, everywhere};

const PAGE: &str = "https://example.org/dues";

/// Waits for a tool that the server adds once it knows what the client can do.
async fn grown(quay: &Visit, tool: &str) {
    let interest = Interest { tools: true, ..Interest::default() };
    let mut watch = quay.connection.subscribe(interest).await.unwrap();
    loop {
        let listed = quay.connection.list_tools().await.unwrap().items;
        if listed.iter().any(|listed| listed.name == tool) {
            return;
        }
        assert!(matches!(watch.next().await, Ok(Event::Tools)));
    }
}

#[tokio::test]
async fn everything_server_elicits_by_form_and_url() {
    let person = Person::new(|question| match question {
        Elicitation::Form(_) => ElicitationResponse::Accept(Some(raw(&json!({"name": "Ada"})))),
        Elicitation::Url(_) => ElicitationResponse::Accept(None),
    });
    each(&everywhere(), ClientServices::default().elicitation(Hasty(person.clone())), async |quay| {
        grown(quay, "trigger-url-elicitation").await;
        grown(quay, "trigger-elicitation-request").await;
        let seen = quay.call("trigger-elicitation-request", json!({})).await;
        for word in ["Ada", "It was a dark and stormy night.", "42", "3.14", "hero-1", "fish-1", "Guitar"] {
            assert!(seen.contains(word), "{word}: {seen}");
        }
        assert_eq!(person.asked().len(), 1);
        quay.call("trigger-url-elicitation", json!({"url": PAGE})).await;
        assert_eq!(person.asked().len(), 1);
        // Refused first, then asked in the ordinary way.
        quay.call("trigger-url-elicitation", json!({"url": PAGE, "errorPath": true})).await;
        assert_eq!(person.asked().len(), 2);
        let refusals = quay.wire.errors(Direction::Received);
        assert_eq!(refusals.iter().filter(|error| error["code"] == -32042).count(), 1);
    })
    .await;
}

#[tokio::test]
async fn everything_server_requests_sampling_and_roots() {
    let (model, hold) = (Model::noon(), Hold::new("file:///tmp/hold"));
    let services = ClientServices::default().sampling(model.clone()).roots(hold.clone());
    each(&everywhere(), services, async |quay| {
        grown(quay, "trigger-sampling-request").await;
        let seen = quay.call("trigger-sampling-request", json!({"prompt": "When?", "maxTokens": 7})).await;
        assert!(seen.contains("\"noon\""), "{seen}");
        assert_eq!(model.asked()[0].max_tokens, 7);
        grown(quay, "get-roots-list").await;
        // It asks by itself, and again when it is told of a change.
        quay.wire.until(|wire| wire.received("roots/list") == 1).await;
        hold.exchange("file:///tmp/deck");
        quay.connection.notify_roots_changed();
        quay.wire.until(|wire| wire.received("roots/list") == 2).await;
        quay.wire.until(|wire| told_of_roots(wire) == 2).await;
        let seen = quay.call("get-roots-list", json!({})).await;
        assert!(seen.contains("file:///tmp/deck") && !seen.contains("file:///tmp/hold"), "{seen}");
    })
    .await;
}

/// How often it logged that it has taken the directories in.
fn told_of_roots(wire: &Wire) -> usize {
    let logged = wire.all(Direction::Received, "notifications/message");
    let taken = |params: &&Value| params["data"].as_str().is_some_and(|data| data.starts_with("Roots updated"));
    logged.iter().filter(taken).count()
}

#[tokio::test]
async fn everything_server_logs_and_reports_resource_updates() {
    const WATCHED: &str = "demo://resource/dynamic/text/1";
    let log = Log::default();
    each(&everywhere(), ClientServices::default().logs(LogLevel::Debug, log.clone()), async |quay| {
        quay.call("toggle-simulated-logging", json!({})).await;
        quay.wire.until(|wire| wire.received("notifications/message") > 0).await;
        quay.call("toggle-simulated-logging", json!({})).await;
        let entries = log.entries();
        assert!(entries.iter().all(|(_, _, data)| data.is_string()), "{entries:?}");
        assert!(!entries.is_empty());
        let interest = Interest { uris: vec![WATCHED.to_owned()], ..Interest::default() };
        let mut watch = quay.connection.subscribe(interest).await.unwrap();
        quay.call("toggle-subscriber-updates", json!({})).await;
        let event = watch.next().await.unwrap();
        assert!(matches!(&event, Event::Resource(uri) if uri == WATCHED), "{event:?}");
        quay.call("toggle-subscriber-updates", json!({})).await;
    })
    .await;
}

#[tokio::test]
async fn everything_server_returns_every_content_kind() {
    each(&everywhere(), ClientServices::default(), async |quay| {
        let weather = quay.try_call("get-structured-content", json!({"location": "New York"})).await.unwrap();
        assert_eq!(value(&weather.structured.unwrap())["temperature"], 33);
        let image = quay.try_call("get-tiny-image", json!({})).await.unwrap();
        let png = |block: &Content| matches!(block, Content::Image { mime_type, .. } if mime_type == "image/png");
        assert!(image.content.iter().any(png));
        let links = quay.try_call("get-resource-links", json!({"count": 3})).await.unwrap();
        let uris = links.content.iter().filter_map(|block| match block {
            Content::ResourceLink { uri, .. } => Some(uri.clone()),
            _ => None,
        });
        assert_eq!(uris.count(), 3);
        let wanted = json!({"resourceType": "Blob", "resourceId": 2});
        let embedded = quay.try_call("get-resource-reference", wanted).await.unwrap();
        let blob = |block: &Content| matches!(block, Content::Resource { resource, .. } if resource.blob.is_some());
        assert!(embedded.content.iter().any(blob));
    })
    .await;
}

#[tokio::test]
async fn everything_server_runs_a_task_with_elicitation() {
    let person = Person::new(|question| {
        let Elicitation::Form(form) = question else { return ElicitationResponse::Cancel };
        let FieldKind::Choice { options } = &form.fields[0].kind else { return ElicitationResponse::Cancel };
        ElicitationResponse::Accept(Some(raw(&json!({"interpretation": options[0].value}))))
    });
    each(&everywhere(), ClientServices::default().elicitation(person.clone()), async |quay| {
        grown(quay, "simulate-research-query").await;
        let arguments = raw(&json!({"topic": "tides", "ambiguous": true}));
        let started =
            quay.connection.start_task("simulate-research-query", &arguments, TaskOptions::default()).await.unwrap();
        let Started::Task(task) = started else { panic!("it is finished") };
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let watch = Arc::new(move |task: &Task| sink.lock().unwrap().push(task.message.clone()));
        let report = text(&task.finish(Some(watch)).await.unwrap());
        assert!(report.starts_with("# Research Report: tides ("), "{report}");
        assert!(report.contains("the task resumed processing and completed"), "{report}");
        assert_eq!(person.asked().len(), 1);
        assert!(seen.lock().unwrap().len() > 1, "{seen:?}");
        assert!(quay.wire.received("notifications/tasks/status") > 1);
    })
    .await;
}
