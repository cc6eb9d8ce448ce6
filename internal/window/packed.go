package window

import "github.com/klauspost/compress/s2"

// packed is an Answer as it is kept: larger ones are compressed, since lists of errors repeat themselves.
type packed struct {
	status              int
	mediaType, rejected string
	doc                 []byte
	small               bool // doc is compressed
}

func (k *Keys) pack(a Answer) packed {
	p := packed{status: a.Status, mediaType: a.MediaType, rejected: a.Rejected, doc: a.Doc}
	if len(a.Doc) > min(k.room, answerRoom) {
		if doc := s2.EncodeBetter(nil, a.Doc); len(doc) < len(a.Doc)*3/4 {
			p.doc, p.small = append([]byte(nil), doc...), true // s2 allocates for the worst case
		}
	}
	return p
}

func (p *packed) unpack() Answer {
	a := Answer{Status: p.status, MediaType: p.mediaType, Rejected: p.rejected, Doc: p.doc}
	if p.small {
		doc, err := s2.Decode(nil, p.doc)
		if err != nil {
			panic("BUG: window: unpack an answer: " + err.Error())
		}
		a.Doc = doc
	}
	return a
}
