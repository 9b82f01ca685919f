//! What an answer carries, counted while it is read.

use bytes::{Bytes, BytesMut};

/// What is to be read of an answer; expanded where it came compressed. Dropped before its end, it closes the stream.
pub struct Body {
    answer: reqwest::Response,
}

/// Why a body cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The connection broke, or what came is not what was announced.
    #[error("the answer broke off: {0}")]
    Broken(String),
    /// It is larger than the limit.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

impl Body {
    pub(crate) fn new(answer: reqwest::Response) -> Self {
        Self { answer }
    }

    /// The next piece, or nothing at the end.
    ///
    /// Dropped while it waits, nothing is lost.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, BodyError> {
        self.answer.chunk().await.map_err(|error| BodyError::Broken(crate::error::reason(&error)))
    }

    /// Everything there is, up to a limit. A body that comes in one piece is not copied.
    pub async fn collect(&mut self, limit: usize) -> Result<Bytes, BodyError> {
        let Some(first) = self.counted(0, limit).await? else { return Ok(Bytes::new()) };
        let Some(second) = self.counted(first.len(), limit).await? else { return Ok(first) };
        let mut all = BytesMut::with_capacity((first.len() + second.len()) * 2);
        all.extend_from_slice(&first);
        all.extend_from_slice(&second);
        while let Some(more) = self.counted(all.len(), limit).await? {
            all.extend_from_slice(&more);
        }
        Ok(all.freeze())
    }

    /// The first bytes, for a message that shows what came instead of an answer.
    pub async fn excerpt(&mut self, most: usize) -> Bytes {
        let mut seen = BytesMut::new();
        while let Ok(Some(chunk)) = self.chunk().await {
            let room = most - seen.len();
            seen.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if seen.len() == most {
                break;
            }
        }
        seen.freeze()
    }

    async fn counted(&mut self, so_far: usize, limit: usize) -> Result<Option<Bytes>, BodyError> {
        let chunk = self.chunk().await?;
        match &chunk {
            Some(chunk) if so_far + chunk.len() > limit => Err(BodyError::TooLarge { limit }),
            _ => Ok(chunk),
        }
    }
}
