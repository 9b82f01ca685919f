//! A page and the transcripts in it.

use std::path::Path;

/// A page: the blocks, and the text before, between and after them.
pub struct Page {
    /// One more than there are blocks.
    around: Vec<String>,
    pub blocks: Vec<Block>,
}

/// One fenced block.
pub struct Block {
    opening: String,
    pub likeness: Likeness,
    pub steps: Vec<Step>,
}

/// How like what is printed has to be to the page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Likeness {
    Lines,
    Words,
}

/// One command and what it prints.
#[derive(Debug, PartialEq)]
pub struct Step {
    /// Where in the page it stands.
    pub line: usize,
    /// As a shell reads it.
    pub command: String,
    /// As the page has it.
    pub output: Vec<String>,
}

const FENCE: &str = "```";

impl Page {
    pub fn read(file: &Path) -> Self {
        Self::parse(&std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display())))
    }

    fn parse(text: &str) -> Self {
        let mut page = Self { around: vec![String::new()], blocks: Vec::new() };
        let mut lines = text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            let last = page.around.last_mut().unwrap();
            let Some(likeness) = likeness(line) else {
                last.push_str(line);
                last.push('\n');
                continue;
            };
            let inside = lines.by_ref().take_while(|(_, line)| *line != FENCE).collect::<Vec<_>>();
            assert!(inside.first().is_some_and(|(_, line)| line.starts_with("$ ")), "line {number}: no command first");
            page.blocks.push(Block { opening: line.to_owned(), likeness, steps: steps(&inside) });
            page.around.push(String::new());
        }
        page
    }

    /// The whole page.
    pub fn text(&self) -> String {
        let mut text = self.around[0].clone();
        for (block, after) in self.blocks.iter().zip(&self.around[1..]) {
            text.push_str(&format!("{}\n", block.opening));
            for step in &block.steps {
                text.push_str(&format!("$ {}\n", step.command.replace('\n', "\n> ")));
                text.extend(step.output.iter().map(|line| format!("{line}\n")));
            }
            text.push_str(&format!("{FENCE}\n{after}"));
        }
        text
    }

    /// The commands of `wharf` that are shown in a pipe and in a terminal.
    pub fn commands(&self) -> impl Iterator<Item = String> {
        let words =
            self.blocks.iter().filter(|block| !block.is_answered()).flat_map(|block| &block.steps).flat_map(|step| {
                let parts = step.command.split("wharf ").skip(1);
                parts.filter_map(|part| part.split_whitespace().find(|word| !word.starts_with('-')))
            });
        words.map(|word| word.trim_matches(['"', '\'']).to_owned())
    }
}

/// How a block that opens like this is compared; not at all if it is no transcript.
fn likeness(line: &str) -> Option<Likeness> {
    match line.strip_prefix(FENCE)? {
        "console" => Some(Likeness::Lines),
        "console words" => Some(Likeness::Words),
        other => {
            assert!(!other.starts_with("console"), "{other}: console or console words");
            None
        }
    }
}

fn steps(lines: &[(usize, &str)]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (number, line) in lines {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { line: number + 1, command: command.to_owned(), output: Vec::new() });
        } else if let (Some(step), Some(more)) =
            (steps.last_mut().filter(|step| step.output.is_empty()), line.strip_prefix("> "))
        {
            step.command.push_str(&format!("\n{more}"));
        } else if let Some(step) = steps.last_mut() {
            step.output.push((*line).to_owned());
        }
    }
    steps
}

impl Block {
    /// Whether somebody types something in it.
    pub fn is_answered(&self) -> bool {
        self.steps.iter().any(|step| !step.typed().is_empty())
    }
}

impl Step {
    /// What is printed, with what somebody types as the terminal shows it.
    pub fn expected(&self) -> Vec<String> {
        self.output.iter().map(|line| line.replace(['‹', '›'], "")).collect()
    }

    /// What somebody types, each after the words it answers.
    pub fn typed(&self) -> Vec<(&str, &str)> {
        let answered = self.output.iter().filter_map(|line| line.split_once('‹'));
        answered.map(|(words, answer)| (words.trim_end(), answer.trim_end_matches('›'))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A page\n\n```console\n$ wharf one \\\n> two\nout\n\nmore\n$ echo x | wharf --json three --stdio \"wharf four\"\n```\n\n```console words\n$ wharf six\nsure? ‹yes›\n```\n\n```sh\nwharf five\n```\nend\n";

    #[test]
    fn page_round_trips_and_its_blocks_are_parsed() {
        let page = Page::parse(TEXT);
        assert_eq!(page.text(), TEXT);
        let [plain, answered] = &page.blocks[..] else { panic!("two blocks") };
        assert_eq!((plain.likeness, answered.likeness), (Likeness::Lines, Likeness::Words));
        let ([one, _], [six]) = (&plain.steps[..], &answered.steps[..]) else { panic!("two steps and one") };
        assert_eq!((one.line, one.command.as_str(), one.output.len()), (4, "wharf one \\\ntwo", 3));
        assert_eq!((six.typed(), six.expected()), (vec![("sure?", "yes")], vec!["sure? yes".to_owned()]));
        // What somebody has to answer is seen in a terminal only.
        assert_eq!(page.commands().collect::<Vec<_>>(), ["one", "three", "four"]);
    }
}
