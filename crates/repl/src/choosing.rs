//! Which model is talked to. It is looked for while everything else goes on: a program may have to be asked for its key.

use std::pin::Pin;

use wharf_agent::Block;

use super::Repl;
use wharf_terminal::chat::models::{Chosen, Models};
use wharf_terminal::failure::Failure;
use wharf_terminal::style::{NAME, paint};

/// A model that is being looked for. Dropped, nobody waits for it any more.
pub struct Choosing {
    found: Pin<Box<dyn Future<Output = Result<Box<Chosen>, Failure>>>>,
    why: Why,
    /// What it is called, as far as that is known.
    pub called: Option<String>,
    /// Tokens that fit into its context, as far as that is known.
    pub context: Option<u64>,
    /// What is said to it once it is there.
    said: Option<Vec<Block>>,
}

/// Who wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Whoever started the program and named it there: without it, there is nothing to begin.
    Started,
    /// Nobody in particular. That there is none is told when somebody talks to it.
    Usual,
    /// Whoever named it just now.
    Asked,
    /// Whoever says something, and there is none.
    Needed,
}

impl Choosing {
    /// What came of it; never, where nothing is looked for. Dropped while it waits, nothing is lost.
    pub async fn next(choosing: &mut Option<Self>) -> Result<Box<Chosen>, Failure> {
        match choosing {
            Some(choosing) => choosing.found.as_mut().await,
            None => std::future::pending().await,
        }
    }
}

impl Repl<'_> {
    /// The models that are configured now.
    pub(super) fn models(&self) -> Models {
        Models::of(self.session, &self.fleet.known().config)
    }

    /// Looks for a model, in place of one that is being looked for.
    pub(super) fn choose(&mut self, name: Option<String>, why: Why) {
        let said = self.choosing.take().and_then(|choosing| choosing.said);
        self.look_for(name, why, said);
    }

    /// Looks for the usual model, to say something to it.
    pub(super) fn choose_for(&mut self, said: Vec<Block>) {
        self.look_for(None, Why::Needed, Some(said));
    }

    fn look_for(&mut self, name: Option<String>, why: Why, said: Option<Vec<Block>>) {
        let models = self.models();
        let (called, context) = (models.called(name.as_deref()), models.context(name.as_deref()));
        let found = Box::pin(async move { models.choose(name.as_deref()).await.map(Box::new) });
        self.choosing = Some(Choosing { found, why, called, context, said });
    }

    /// Takes back what was to be said to a model that is being looked for, and tells whether there was something.
    pub(super) fn unsay(&mut self) -> bool {
        let said = self.choosing.as_mut().and_then(|choosing| choosing.said.take());
        self.choosing.take_if(|choosing| choosing.why == Why::Needed);
        said.is_some()
    }

    /// Goes on with a model that was found.
    pub(super) fn chosen(&mut self, chosen: Result<Box<Chosen>, Failure>) -> Result<(), Failure> {
        let Some(Choosing { why, said, .. }) = self.choosing.take() else { return Ok(()) };
        match (chosen, why) {
            (Ok(chosen), _) => {
                if why == Why::Asked {
                    self.session.console.say(format_args!("the model is {}", paint(NAME, &chosen.name)));
                }
                self.desk.lend(Some(chosen.model.clone()));
                self.chat.choose(*chosen);
                said.into_iter().for_each(|said| self.begin(said));
            }
            (Err(failure), Why::Started) => return Err(failure),
            (Err(_), Why::Usual) => self.desk.lend(None),
            (Err(failure), Why::Needed) => self.tell(failure),
            (Err(failure), Why::Asked) => {
                self.tell(failure);
                // It was never meant for the one that cannot be had.
                said.into_iter().for_each(|said| self.begin(said));
            }
        }
        Ok(())
    }
}
