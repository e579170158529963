package provider

import (
	"context"
	"fmt"
)

// Finding is what a check of a provider found.
type Finding struct {
	Provider string
	Setting  string // that it is about
	OK       bool
	Message  string
}

// Check asks every configured provider whether it can be used.
func (r *Registry) Check(ctx context.Context) (findings []Finding) {
	r.ask(ctx, func(string) bool { return true })
	hearing := false
	for _, v := range r.vendors {
		hearing = hearing || v.transcriber != nil
		f := Finding{Provider: v.name, Setting: v.setting, OK: true}
		r.mu.Lock()
		o, err := r.offers[v.name], r.asked[v.name]
		r.mu.Unlock()
		if err == nil && v.check != nil {
			err = v.check(ctx)
		}
		switch {
		case err != nil:
			f.OK, f.Message = false, err.Error()+"; see "+v.setting
		case len(o.Voices) == 0 && len(o.Models) == 0:
			f.Message = "the key is good"
		default:
			f.Message = fmt.Sprintf("%d voices, %d models", len(o.Voices), len(o.Models))
		}
		findings = append(findings, f)
	}
	if !hearing {
		findings = append(findings, Finding{Setting: "DEEPGRAM_API_KEY", Message: "nobody transcribes what customers say; set DEEPGRAM_API_KEY, ASSEMBLYAI_API_KEY or OPENAI_API_KEY"})
	}
	return findings
}
