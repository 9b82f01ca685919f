//! Keeps two servers, of which one cannot be started, and tells what happens until both have settled; then takes the
//! broken one off while the other stays.
//!
//! `cargo run -p wharf --example watch -- wharf demo-server`: the arguments are a server to start.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program of its own: it talks and reads the environment"
)]

use wharf::spec::{Environment, ServerEntry, ServerName, ServerSpec, StdioSpec, UntrustedText};
use wharf::{Event, EventDelivery, Host};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut command = std::env::args_os().skip(1);
    let program = command.next().ok_or("name a server to start, for instance: wharf demo-server")?;
    let good = StdioSpec { program, args: command.collect(), ..StdioSpec::default() };
    let bad = StdioSpec { program: "no-such-server".into(), ..StdioSpec::default() };
    let good = ServerEntry::new(ServerName::new("good")?, ServerSpec::Stdio(good));
    let bad = ServerEntry::new(ServerName::new("bad")?, ServerSpec::Stdio(bad));

    // Heard from the start: nothing that happens before the first `next` is missed.
    let (host, mut events) = Host::builder()
        .environment(Environment { env: std::env::vars_os().collect(), cwd: std::env::current_dir()? })
        .servers([good.clone(), bad])
        .start_with_events()
        .await?;
    let teller = tokio::spawn(async move {
        while let Some(heard) = events.next().await {
            match heard {
                EventDelivery::Event(told) => tell(&told.event),
                EventDelivery::Missed(count) => println!("{count} events came too fast"),
            }
        }
    });

    host.wait_until_settled().await;
    let changes = host.set_servers(vec![good]).await;
    println!("{} stayed, {} went", changes.unchanged.len(), changes.removed.len());
    host.close().await; // Ends the events as well.
    Ok(teller.await?)
}

fn tell(event: &Event) {
    match event {
        Event::State { server, state, last_error: None } => println!("{server} is {state}"),
        Event::State { server, state, last_error: Some(error) } => {
            // What went wrong may quote the server, so it is shown escaped.
            println!("{server} is {state}: {}", UntrustedText::new(error.to_string().as_str()));
        }
        Event::Catalog { server, tools } => println!("{server} offers {tools} tools"),
        _ => {}
    }
}
