▁Haus NULL 0.5
a NULL 0.25
b a 0.75
▁Haus ▁the 1e-05
er	▁the 0.33333334
none b 1
. . 1
▁the </s> 0
