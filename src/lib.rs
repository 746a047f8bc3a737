//! Never lose an AI agent's work.
pub mod fsio;
pub mod json;
