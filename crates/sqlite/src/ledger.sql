-- The ledger of each key: lines that are only ever added, whatever becomes of the documents.
CREATE TABLE ledger (
    key INTEGER NOT NULL,
    -- Counts from 0.
    position INTEGER NOT NULL,
    line TEXT NOT NULL,
    PRIMARY KEY (key, position)
) STRICT, WITHOUT ROWID;
