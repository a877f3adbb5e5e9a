namespace gloss {}
