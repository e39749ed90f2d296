"""Ordinary words of English that are names of people, too.

A customer called Price would have each price hidden. As names they have a capital letter, as words
seldom: so they count with one only. Words of up to four letters do that in any case (`learned`).
"""

_WORDS = """
abbey abbot acres amber apple april archer august austin autumn baker banks basil berries berry
bishop black blank blessing bliss block bloom board boston bowls bowman branch brand brandy bridge
bridges bright brook brooks brown buckle burns bushes butcher butler buyer cannon canon cardinal
cards carol carpenter carver castle cattle cause chamber chambers chance chandler channel chapel
charge charity chase cherry chief christian church churches clark clay clear clerk cliff close
cloud coins comfort constable cooper copper costs counts court courts cover crane cross crown
crystal daisy dallas deacon diamond doors drake draper driver drivers eagle early earth eastern
english faith falls farmer farms fields fisher flash flint flood floor florence flower flowers
folder force forest forester fortune foster fowler frank franklin freed freeman french friday
friend frost fuller funk garden gardener garner gates gentle german ginger glass glover golden
goods grace grant grass graves green groom grove guard hammer hammers harbor harmony harper haven
heart hearts heather hills holland honor hooker horne house houses houston hunter ireland irish
ivory jewel jordan judge justice keeper knight knots ladder lance large lemon light lincoln little
locks london longer lovely loving major manual marble march marine mark marks marsh martin mason
masters match matters meadow means mercer mercy merit merry midnight miles miller mills minor model
monday money moody morning mount mountain music nation needle nickel night noble nobles north
northern number oaks olive oliver orange order orders organ outlaw paris parker parks parson
parsons partridge patch patience peacock pearl penny pepper person piper pitts plant plenty point
points police pope porter potter pound pounds power powers price prices priest prince proud
prudence queen quick raven reader reading reason record reeve rider rivers robin rocky roman rooms
roper roses royal sales salmon sandy sargent savage sawyer search sellers senior sergeant shade
shadow sharp sheet sheets shepherd sheriff short shots silver singer single skinner small smart
south southern spark sparks speed spence spring square stack stage stamp stanley staples stark
starks steel steward still stock stone stones storm story strange street string strong summer
summers sunday swift table tables tailor temple terry thatcher thorn tiger tiller title toller
tower towers trade trader travel treat trinity turner tyler union vernon victor violet wages walker
walls warden waters waves weaver weeks welcome welsh western wheat wheel wheeler white winner
winter winters wolves woods words worth wright yellow young
"""
ORDINARY = frozenset(_WORDS.split())
