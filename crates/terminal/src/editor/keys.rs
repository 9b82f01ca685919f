//! Key bindings that differ from the line editor's defaults.

use std::sync::{Arc, Mutex, PoisonError};

use rustyline::history::MemHistory;
use rustyline::{
    Cmd, ConditionalEventHandler, Editor, Event, EventContext, EventHandler, Helper, KeyCode, KeyEvent, Modifiers,
    RepeatCount,
};

use super::prompt_state::PromptState;
use super::terminal_mode;

/// A key that ends the line without entering it: Ctrl-C or Ctrl-D.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitKey {
    Interrupt,
    End,
}

/// The pressed exit key, if any. Clones share the same state.
#[derive(Clone, Default)]
pub struct PressedExitKey(Arc<Mutex<Option<ExitKey>>>);

impl PressedExitKey {
    pub fn peek(&self) -> Option<ExitKey> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn take(&self) -> Option<ExitKey> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends the line through `AcceptLine`, so that it is drawn one last time.
    fn press(&self, key: ExitKey) -> Cmd {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
        Cmd::AcceptLine
    }
}

/// Installs the key bindings.
pub fn bind_keys<H: Helper>(editor: &mut Editor<H, MemHistory>, prompt_state: &PromptState, pressed: &PressedExitKey) {
    let exit_key = |on: KeyEvent, key| (on, Box::new(ExitKeyHandler { pressed: pressed.clone(), key }));
    for (key, handler) in
        [exit_key(KeyEvent::ctrl('C'), ExitKey::Interrupt), exit_key(KeyEvent::ctrl('D'), ExitKey::End)]
    {
        editor.bind_sequence(key, EventHandler::Conditional(handler));
    }
    let control = ['P', 'N', 'R', 'S'].map(KeyEvent::ctrl);
    let others = [KeyEvent::alt('<'), KeyEvent::alt('>'), plain(KeyCode::Up), plain(KeyCode::Down)];
    for key in control.into_iter().chain(others) {
        editor.bind_sequence(key, EventHandler::Conditional(Box::new(HistoryKeyHandler(prompt_state.clone()))));
    }
    for key in [KeyEvent(KeyCode::Enter, Modifiers::ALT), KeyEvent::alt('\n')] {
        editor.bind_sequence(key, Cmd::Newline);
    }
    editor.bind_sequence(Event::Any, EventHandler::Conditional(Box::new(TypeAheadHandler(prompt_state.clone()))));
    editor.bind_sequence(KeyEvent::ctrl('Z'), EventHandler::Conditional(Box::new(SuspendHandler)));
}

fn plain(code: KeyCode) -> KeyEvent {
    KeyEvent(code, Modifiers::NONE)
}

/// Ctrl-C on any line, Ctrl-D on an empty one.
struct ExitKeyHandler {
    pressed: PressedExitKey,
    key: ExitKey,
}

impl ConditionalEventHandler for ExitKeyHandler {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, line: &EventContext) -> Option<Cmd> {
        (self.key == ExitKey::Interrupt || line.line().is_empty()).then(|| self.pressed.press(self.key))
    }
}

/// History keys, disabled while a question is open.
struct HistoryKeyHandler(PromptState);

impl ConditionalEventHandler for HistoryKeyHandler {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext) -> Option<Cmd> {
        self.0.field().map(|_| Cmd::Noop)
    }
}

/// Any other key, ignored if it was pressed before the question was drawn.
struct TypeAheadHandler(PromptState);

impl ConditionalEventHandler for TypeAheadHandler {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext) -> Option<Cmd> {
        self.0.ignores_keys().then_some(Cmd::Noop)
    }
}

struct SuspendHandler;

impl ConditionalEventHandler for SuspendHandler {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext) -> Option<Cmd> {
        terminal_mode::suspend();
        Some(Cmd::Repaint)
    }
}
