"""The transaction coordinator: state of transactional ids, their log, their markers."""
