//! The words of a text, and the phrases among them.

use std::ops::Range;

use super::fold::{Folded, fold};
use super::lexicon::{GROUPS, Hash, LEXICON, Lexicon, Pattern, Sets, Step, Warning};
use super::spelt::{self, Speller};
use super::{Add, FindingRule, Weight};

/// Finds the phrases of the table. In a name, a capital after a small letter begins a word.
pub(super) fn read(text: &str, is_name: bool, add: &mut Add<'_>) {
    let lexicon = &*LEXICON;
    let mut tokens = Tokenizer::new(lexicon, is_name).read(text, add);
    mark_groups(lexicon, &mut tokens);
    mark_warnings(text, lexicon, &mut tokens);
    let nearby = nearby(lexicon, &tokens);
    let mut suspicions = Suspicions::default();
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.word != Lexicon::UNKNOWN) {
        let mut try_all = |patterns: &[Pattern], end: usize| {
            let possible =
                |pattern: &&Pattern| pattern.is_possible(&nearby[token.sentence]) && token.may_begin(pattern);
            for pattern in patterns.iter().filter(possible) {
                let Some(last) = match_rest(lexicon, &pattern.steps, &tokens, end) else { continue };
                let shown = &text[token.start..tokens[last].end];
                if pattern.is_meant_by(shown) {
                    add(pattern.rule, suspicions.weigh(pattern, at..last + 1, token.sentence), shown);
                }
            }
        };
        try_all(lexicon.beginning_with(token.word), at);
        for (group, length) in token.members() {
            try_all(lexicon.beginning_in(group), at + length - 1);
        }
    }
    together(text, lexicon, &tokens, add);
    unspaced(text, add);
}

/// For every sentence, the sets that its words and those of the next are in: a phrase reaches no further.
fn nearby(lexicon: &Lexicon, tokens: &[Token]) -> Vec<Sets> {
    let mut nearby = vec![Sets::default(); tokens.last().map_or(0, |token| token.sentence + 1)];
    for token in tokens.iter().filter(|token| token.word != Lexicon::UNKNOWN) {
        let mut join = |sets: &Sets| {
            for nearby in &mut nearby[token.sentence.saturating_sub(1)..=token.sentence] {
                nearby.iter_mut().zip(sets).for_each(|(all, some)| *all |= some);
            }
        };
        join(lexicon.sets_of(token.word));
        token.members().for_each(|(group, _)| join(lexicon.sets_in(group)));
    }
    nearby
}

/// What has been suspected in a text so far: of every rule the last, the words that gave rise to it, and where.
#[derive(Default)]
struct Suspicions(Vec<(FindingRule, Range<usize>, usize)>);

impl Suspicions {
    /// Takes a suspicion for certain when another of its kind went shortly before, in other words. A long text may well
    /// hold two that have nothing to do with each other.
    fn weigh(&mut self, pattern: &Pattern, words: Range<usize>, sentence: usize) -> Weight {
        /// So many sentences on, nobody is still speaking of the same thing.
        const FAR: usize = 2;
        if pattern.weight != Weight::Suspect || !pattern.rule.adds_up() {
            return pattern.weight;
        }
        let Some((_, before, last)) = self.0.iter_mut().find(|(rule, ..)| *rule == pattern.rule) else {
            self.0.push((pattern.rule, words, sentence));
            return Weight::Suspect;
        };
        let (is_other, is_near) = (before.end <= words.start, sentence - *last < FAR);
        if is_other || !is_near {
            (*before, *last) = (words, sentence);
        }
        if is_other && is_near { Weight::Certain } else { Weight::Suspect }
    }
}

/// Finds what is a sign when it stands together in a sentence.
fn together(text: &str, lexicon: &Lexicon, tokens: &[Token], add: &mut Add<'_>) {
    /// What goes on for longer is taken in pieces.
    const LONGEST: usize = 40;
    let sentences = tokens.chunk_by(|one, next| one.sentence == next.sentence);
    for sentence in sentences.flat_map(|sentence| sentence.chunks(LONGEST)) {
        let (mut all, mut meant) = (0, 0);
        for token in sentence {
            let traits = token.traits(lexicon);
            all |= traits;
            meant |= if token.is_warned { 0 } else { traits };
        }
        for (rule, weight) in lexicon.together(all, meant) {
            add(rule, weight, &text[sentence[0].start..sentence[sentence.len() - 1].end]);
        }
    }
}

/// Notes where a member of a class begins, and how many words it has.
fn mark_groups(lexicon: &Lexicon, tokens: &mut [Token]) {
    for at in 0..tokens.len() {
        for (group, words) in lexicon.members(tokens[at].word) {
            let is_there = tokens.len() - at >= words.len()
                && tokens[at..].iter().zip(words).all(|(token, word)| token.word == *word);
            if is_there {
                let length = u8::try_from(words.len()).unwrap_or(u8::MAX);
                tokens[at].groups[*group] = tokens[at].groups[*group].max(length);
            }
        }
    }
}

/// Notes what a text says is not to be done, and what it warns against giving away: up to the end of the sentence, or
/// to where it turns.
fn mark_warnings(text: &str, lexicon: &Lexicon, tokens: &mut [Token]) {
    /// Nobody warns for longer, and reading further would take time.
    const REACH: usize = 40;
    let Warning { against, refused, giving, turning } = &lexicon.warning;
    for at in 0..tokens.len() {
        let Some(next) = tokens[at].fits(lexicon, against).map(|length| at + length) else { continue };
        let sentence = tokens[at].sentence;
        let rest = tokens[next..].iter().take(REACH).take_while(|token| token.sentence == sentence);
        let turn = rest.clone().position(|token| token.fits(lexicon, turning).is_some());
        let end = next + turn.unwrap_or_else(|| rest.clone().count());
        let is_near = |step: &Step| tokens[next..end].iter().take(2).any(|token| token.fits(lexicon, step).is_some());
        let (is_refused, is_warning) = (is_near(refused), is_near(giving));
        tokens[next..end].iter_mut().take(2).for_each(|token| token.is_refused |= is_refused);
        tokens[next..end].iter_mut().for_each(|token| token.is_warned |= is_warning);
        // Whoever says not to act without asking wants to be asked.
        if turn.is_some() && end > next && !text[tokens[at].end..tokens[end].start].contains([',', ':', ';']) {
            tokens[end].is_refused = true;
        }
    }
}

/// The last token of a phrase of which one has been read up to this.
fn match_rest(lexicon: &Lexicon, steps: &[Step], tokens: &[Token], at: usize) -> Option<usize> {
    let Some((step, rest)) = steps.split_first() else { return Some(at) };
    let within = (at + 1)..tokens.len().min(at + 2 + usize::from(step.gap));
    // Words that must follow directly may do so across a full stop, which may be there to part them.
    let same = |next: &usize| step.gap == 0 || tokens[*next].sentence == tokens[at].sentence;
    let mut fitting = within.filter(same).filter_map(|next| Some(next + tokens[next].fits(lexicon, step)? - 1));
    match step.is_forbidden {
        true if fitting.next().is_some() => None,
        true => match_rest(lexicon, rest, tokens, at),
        false => fitting.find_map(|next| match_rest(lexicon, rest, tokens, next)),
    }
}

fn unspaced(text: &str, add: &mut Add<'_>) {
    if text.is_ascii() {
        return;
    }
    for (rule, weight, parts) in super::phrases::UNSPACED {
        if let Some((start, end)) = in_order(text, parts) {
            add(*rule, *weight, &text[start..end]);
        }
    }
}

/// Where all the parts stand, one shortly after the other, in a script that has no spaces.
fn in_order(text: &str, parts: &[&str]) -> Option<(usize, usize)> {
    /// About a dozen characters of such a script.
    const CLOSE: usize = 40;
    let start = text.find(parts[0])?;
    let mut end = start + parts[0].len();
    for part in &parts[1..] {
        let gap = text[end..].find(part).filter(|gap| *gap <= CLOSE)?;
        end += gap + part.len();
    }
    Some((start, end))
}

/// A word of the text: its number in the lexicon, and where it stands.
struct Token {
    word: u16,
    sentence: usize,
    start: usize,
    end: usize,
    is_code: bool,
    /// Whether it stands in an example of JSON, or in a name, and so asks for nothing.
    is_example: bool,
    /// Whether it is part of what one is warned against.
    is_warned: bool,
    /// Whether it is the very act that one is told not to do.
    is_refused: bool,
    /// For every class, how many words long the member of it is that begins here.
    groups: [u8; GROUPS],
}

impl Token {
    /// Which of the classes that are looked for together it is in or begins.
    fn traits(&self, lexicon: &Lexicon) -> u64 {
        if self.is_example || self.is_code {
            return if self.is_example { 0 } else { Lexicon::CODE };
        }
        self.members().fold(lexicon.traits_of(self.word), |all, (group, _)| all | lexicon.traits_in(group))
    }

    /// Whether a phrase that begins here says what it seems to: who warns of a theft is no thief, and an example wants
    /// nothing, short of what nobody would give as one.
    fn may_begin(&self, pattern: &Pattern) -> bool {
        let is_moot = self.is_warned && pattern.rule.is_theft()
            || self.is_refused && matches!(pattern.rule, FindingRule::Override | FindingRule::Secrecy)
            || self.is_example && pattern.weight < Weight::Certain;
        !is_moot
    }

    /// How many words of the text a step takes if it begins here.
    fn fits(&self, lexicon: &Lexicon, step: &Step) -> Option<usize> {
        if step.is_in(lexicon.sets_of(self.word)) {
            return Some(1);
        }
        let fitting = self.members().filter(|(group, _)| step.is_in(lexicon.sets_in(*group)));
        fitting.map(|(_, length)| length).max()
    }

    /// The classes of which a member begins here, and how many words it has.
    fn members(&self) -> impl Iterator<Item = (usize, usize)> {
        let lengths = self.groups.iter().enumerate().filter(|(_, length)| **length > 0);
        lengths.map(|(group, length)| (group, usize::from(*length)))
    }
}

struct Tokenizer<'a> {
    lexicon: &'a Lexicon,
    is_name: bool,
    tokens: Vec<Token>,
    sentence: usize,
    /// Where the example ends that is being read.
    example: usize,
}

/// A word that is being read, where it began, and whether in backticks.
#[derive(Clone, Copy)]
struct Word {
    hash: Hash,
    start: usize,
    is_code: bool,
}

impl<'a> Tokenizer<'a> {
    fn new(lexicon: &'a Lexicon, is_name: bool) -> Self {
        Self { lexicon, is_name, tokens: Vec::new(), sentence: 0, example: 0 }
    }

    fn read(mut self, text: &str, add: &mut Add<'_>) -> Vec<Token> {
        let mut speller = Speller::new();
        let (mut word, mut before, mut is_code) = (None, ' ', false);
        for (at, character) in text.char_indices() {
            match fold(character) {
                Folded::Letter(letter) => {
                    if self.is_name && is_hump(before, character) {
                        self.end(word.take(), at);
                    }
                    let Word { hash, start, is_code } = word.unwrap_or(Word { hash: Hash::EMPTY, start: at, is_code });
                    word = Some(Word { hash: hash.with(letter), start, is_code });
                    if let Some(phrase) = speller.letter(letter) {
                        add(phrase, Weight::Certain, spelt::shown(text, at));
                    }
                }
                Folded::Nothing => {
                    is_code ^= character == '`';
                    if at >= self.example && text[at..].starts_with("```") {
                        self.example = end_of_example(text, at);
                        self.sentence += 1;
                    }
                    continue;
                }
                Folded::Break => {
                    self.end(word.take(), at);
                    self.sentence += usize::from(ends_sentence(before, character));
                    // A dot that nothing precedes belongs to the word: `.env`, `~/.ssh`.
                    if character == '.' && !before.is_alphanumeric() && before != '.' {
                        word = Some(Word { hash: Hash::DOT, start: at, is_code });
                    }
                }
            }
            before = character;
        }
        self.end(word, text.len());
        self.tokens
    }

    fn end(&mut self, word: Option<Word>, end: usize) {
        let Some(Word { hash, start, is_code }) = word else { return };
        let word = self.lexicon.word(hash);
        if word != Lexicon::FILLER && hash != Hash::DOT {
            let is_example = self.is_name || start < self.example;
            let (is_warned, is_refused) = (false, false);
            let (sentence, groups) = (self.sentence, [0; GROUPS]);
            self.tokens.push(Token { word, sentence, start, end, is_code, is_example, is_warned, is_refused, groups });
        }
    }
}

/// Whether a sentence ended before this: with a stop, an empty line, or the next point of a list.
fn ends_sentence(before: char, character: char) -> bool {
    let is_stop = matches!(before, '.' | '!' | '?' | ';') && character.is_whitespace();
    is_stop || before == '\n' && matches!(character, '\n' | '-' | '*' | '•' | '#')
}

/// Where the block between fences ends that begins here, if it holds JSON; else where it begins.
fn end_of_example(text: &str, start: usize) -> usize {
    const FENCE: &str = "```";
    let inner = start + FENCE.len();
    let content = text[inner..].trim_start_matches(|letter: char| letter.is_ascii_alphabetic()).trim_start();
    match text[inner..].find(FENCE) {
        Some(length) if content.starts_with(['{', '[']) => inner + length,
        _ => inner,
    }
}

fn is_hump(before: char, character: char) -> bool {
    before.is_lowercase() && character.is_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(FindingRule, Weight)> {
        let mut found = Vec::new();
        read(text, false, &mut |rule, weight, _| found.push((rule, weight)));
        found
    }

    #[test]
    fn a_phrase_is_found_however_it_is_set() {
        for text in [
            "Do not tell the user.",
            "do NOT,\n tell... the -- user",
            "Do. Not. Tell. The. User.",
            "do_not_tell_the_user",
            "D0 n0t te11 the us3r",
        ] {
            assert!(found(text).contains(&(FindingRule::Secrecy, Weight::Certain)), "{text}");
        }
    }

    #[test]
    fn words_far_apart_are_no_phrase() {
        assert_eq!(found("Does not scale. Tell me about the user."), []);
        let far = "do not forget to save, and later you may want to tell whoever is there of the user";
        assert!(found(far).iter().all(|(_, weight)| *weight < Weight::Certain));
    }
}
