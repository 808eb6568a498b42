"""Short lists of names that the recogniser's automata look up: months, domains, currencies, units."""

from __future__ import annotations

MONTHS = """
jan january feb february apr april jun june jul july aug august sep sept september oct october nov november dec december
"""
# Common words too, so that they need a capital or a year beside them.
WORD_MONTHS = "mar march may"

# Without a scheme or www. a domain is an address only if its last part is one of these. Endings that are common in file
# names (.py, .sh, .rs) are left out.
TLDS = """
com org net edu gov mil int info biz name pro museum coop aero jobs mobi travel app dev blog shop store online site
tech cloud xyz top club live news world agency email design digital media group page space website wiki io ai co tv
fm gg uk de fr es nl eu ch se dk fi pl cz sk hu ro bg gr pt ie lu ee lv lt ru ua by tr il ca au nz jp cn kr tw hk sg
th vn ph id my in br mx ar cl pe ve za ng ke eg ae sa ir pk bd lk at be it is no us si hr rs li mt cy test example
"""
# These are English words too: "done.It" has none.
WORD_TLDS = "at be in is it my no us by id pro name info page space top live news world group my"

# Codes of ISO 4217 that are no English words (TRY, ALL, TOP are).
CODES = """
usd eur gbp jpy chf cad aud nzd cny rmb inr sek nok dkk isk pln czk huf ron bgn hkd sgd krw twd brl mxn ars clp zar
rub uah ils thb idr myr php vnd aed sar egp ngn kes pkr btc
"""
# Before a dollar sign.
PREFIXES = "us usd c ca cad a au aud nz nzd hk hkd s sg r mx"

# Letters directly after a number: the number is a token, and the unit a word.
UNITS = """
km m cm mm nm um mi ft yd in kg g mg ug lb lbs oz t l ml dl cl gal hz khz mhz ghz thz kb mb gb tb pb kib mib gib tib
bit bits kbps mbps gbps bps b k bn mn mm s sec secs ms us ns min mins h hr hrs w kw mw gw kwh mwh wh v kv mv amp ma
mah mph kmh kph rpm fps dpi px pt em rem c f pa kpa hpa bar psi db cal kcal kj x pp pc pcs yo am pm
"""

PLAIN_ATTRIBUTES = """
async autofocus autoplay checked compact controls default defer disabled hidden inert ismap loop multiple muted nohref
noresize noshade nowrap open readonly required reversed selected
"""
