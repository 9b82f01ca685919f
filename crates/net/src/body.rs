//! Response bodies with size limits.

use bytes::{Bytes, BytesMut};

/// The body of a response, decompressed. Dropping it before its end closes the stream.
pub struct ResponseBody {
    answer: reqwest::Response,
}

/// An error of reading a body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The connection broke, or the body does not match its headers.
    #[error("the response was interrupted: {0}")]
    Broken(String),
    /// The body exceeds the limit.
    #[error("the response exceeds {limit} bytes")]
    TooLarge {
        /// Maximum size in bytes.
        limit: usize,
    },
}

impl ResponseBody {
    pub(crate) fn new(answer: reqwest::Response) -> Self {
        Self { answer }
    }

    /// Returns the next chunk, or `None` at the end. Cancel-safe.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, BodyError> {
        self.answer.chunk().await.map_err(|error| BodyError::Broken(crate::error::cause_chain(&error)))
    }

    /// Reads the whole body, up to `limit` bytes. A body that arrives in one chunk is not copied.
    pub async fn collect(&mut self, limit: usize) -> Result<Bytes, BodyError> {
        let Some(first) = self.chunk_within(0, limit).await? else { return Ok(Bytes::new()) };
        let Some(second) = self.chunk_within(first.len(), limit).await? else { return Ok(first) };
        let mut all = BytesMut::with_capacity((first.len() + second.len()) * 2);
        all.extend_from_slice(&first);
        all.extend_from_slice(&second);
        while let Some(more) = self.chunk_within(all.len(), limit).await? {
            all.extend_from_slice(&more);
        }
        Ok(all.freeze())
    }

    /// Reads up to `most` bytes, for an error message that quotes an unexpected response. Read errors end the excerpt.
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

    async fn chunk_within(&mut self, so_far: usize, limit: usize) -> Result<Option<Bytes>, BodyError> {
        let chunk = self.chunk().await?;
        match &chunk {
            Some(chunk) if so_far + chunk.len() > limit => Err(BodyError::TooLarge { limit }),
            _ => Ok(chunk),
        }
    }
}
