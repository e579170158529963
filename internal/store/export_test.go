package store

// Statements whose cost must not follow how many leads there are.
const (
	DueLeadsSQL  = dueLeads
	AllAtWorkSQL = allAtWork
)

// Rebind is a statement as the database wants it.
func (db *DB) Rebind(query string) string { return db.rebind(query) }
