"""Words the contradiction detector knows, by the part they play in a statement. All lower case.

English only: a text in another language states nothing here, so nothing of it is ever dropped.
"""

from __future__ import annotations

from typing import Final


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


COPULAS: Final = _set("is are was were be equals = :")
PAST_COPULAS: Final = _set("was were")
ARTICLES: Final = _set("the a an")
DEFINITE: Final = _set("the our my your its their his her all every each")
# Who or what is meant stands elsewhere: such a sentence alone says nothing that can be compared.
UNRESOLVED: Final = _set("it this that these those they he she here which who one")
INDEFINITE: Final = _set(
    "a an some any many most few several another other certain one both either neither half"
)
# What makes a sentence true only sometimes, only for some, or only in somebody's view.
HEDGES: Final = _set(
    """if unless when whenever while although though except however but because since whether maybe
    perhaps possibly probably likely might could would seems appears reportedly allegedly suggests
    suggested thinks believes assumes claims argued said says asked expects expected hopes sometimes
    often usually mostly generally typically occasionally partly only also another additional
    additionally extra more less over under between either or than yesterday tomorrow today tonight
    last next previous earlier"""
)
APPROXIMATE: Final = _set("about around approximately roughly nearly almost circa ca")
FILLERS: Final = _set("now yet currently still always just actually already please exactly")
NEGATIONS: Final = _set("not never cannot no nor")
AUXILIARIES: Final = _set("do does did")
MODALS: Final = _set("must should shall can may will need needs has have had requires require")
PREPOSITIONS: Final = _set(
    """on at in to for by from of with within after before until through via per into as up upon
    every during against above below"""
)
# A number behind one of these is how much, how long or how often, whatever the verb is.
LIMITS: Final = _set("after within until every most least maximum minimum exceed limit")

# Verbs of which a subject has one object at a time.
FUNCTIONAL: Final = frozenset(
    tuple(pair.split())
    for pair in """lives in|located in|based in|belongs to|owned by|managed by|led by|headed by
    |reports to|maintained by|married to|born in|named after|defaults to|assigned to|written in
    |chaired by|audited by|operated by|hosted in|hosted by
    |headquartered in|founded by|signed by|works for|chaired by|run by
    |allocated to""".replace("\n", "").split("|")
    if pair.strip()
)
NAMING: Final = _set("called named")
# Present-tense verbs that tell a quantity, a moment or a place of a subject, one at a time.
STATIVE: Final = _set(
    """costs cost takes take lasts last weighs weigh measures holds has have allows allow supports
    starts start begins begin ends end opens open closes close expires expire lives belongs reports
    listens listen runs run uses use defaults needs need requires require equals contains
    contain meets meet goes go ships ship charges charge pays pay earns earn stops stop
    keeps keep retains retain stores store accepts accept limits limit works work serves serve
    covers cover receives receive provides provide returns return sends send offers offer falls fall
    arrives departs leaves renews renew lies stands seats carries covers employs scales fails fail
    happens happen occurs occur includes include prefers prefer likes like wants want drinks eats
    refreshes rotates refresh rotate retries retry polls poll waits wait becomes become means mean
    remains remain stays stay publishes publish sells sell buys buy speaks speak is are was were
    must should shall can may will cannot has"""
)
# Of these a subject may have several objects, so that another object contradicts nothing.
PLURAL: Final = _set(
    """contains contain includes include covers cover uses use supports support accepts accept
    prefers prefer likes like wants want has have offers offer provides provide sells sell speaks
    speak receives receive sends send mentions cites depends needs buys buy drinks eats serves
    serve allows allow publishes publish employs"""
)
# What happens to one subject once.
ONCE: Final = _set(
    """born died founded established delivered released launched signed published completed
    shipped installed acquired registered issued hired elected built opened closed married filed
    approved discharged admitted expired inaugurated created due"""
)
PAST: Final = _set(
    """paid sent bought sold met went came took had said got left wrote made spent grew fell rose
    ran held gave lost won began found drew cut put saw bore kept felt brought rang read hit"""
)
# Behind these a day or a moment is the one that there is.
SCHEDULED: Final = _set(
    """is are starts start begins begin ends end closes close expires expire due scheduled planned
    place until by falls fall ships ship launches opens open arrives departs leaves set renews renew
    be deadline meets meet happens goes go out delivered born died founded released launched
    signed published completed shipped established moved"""
)
# Nouns of which a thing has one: "the REGION of the cluster is …".
ATTRIBUTES: Final = _set(
    """address amount author balance bitrate birthday birthplace boss branch brand budget capacity
    capital captain carrier category ceo chair charge chief class code color colour commander
    contact cost coach country currency database date day deadline default density depth
    destination diagnosis diameter director distance domain dose dosage duration editor email
    encoding engine environment fee format founder frequency gender grade hash head headquarters
    height host hostname hour interval landlord language lead leader length level license licence
    limit location maintainer manager manufacturer material maximum mayor method minimum mode model
    month name nationality origin owner password path payment pharmacy phone place plan plate port
    position premium president price principal priority profession protocol provider quota rank
    rate rating reason region reviewer role room root salary schedule schema score sender server
    severity shard size source speed sponsor standard start status storage subnet supervisor
    supplier surgeon temperature term theme threshold tier time timeout timezone title
    total transport type unit url username value vendor venue version voltage volume warehouse
    weight width winner year zone gate terminal seat allergy insurer architect contractor teacher
    tutor therapist physician doctor dentist nurse pilot conductor singer composer producer
    publisher translator illustrator framework compiler runtime orchestrator scheduler broker
    registry cluster backend frontend colour backbone interest retention elevation expiry"""
)
# What is read now and then: two undated readings of one thing are no contradiction.
MEASURED: Final = _set(
    """temperature position balance score rank speed level status weight voltage volume depth
    distance density rate frequency size duration height length width amount cost price time
    location address gate terminal seat stock total shard"""
)
# Of these a thing may have several.
SHARED: Final = _set(
    """source server sender reviewer sponsor vendor supplier teacher tutor therapist doctor dentist
    nurse allergy diagnosis contact role dose dosage payment reason color colour material language
    singer composer producer translator provider title destination founder author editor director
    email phone username password url path host hostname database framework compiler engine backend
    frontend orchestrator scheduler broker registry brand country class method domain room conductor
    publisher illustrator architect contractor carrier"""
)
# Of these a structured fact states one of several. Of the rest of SHARED its owner states the one.
SEVERAL: Final = SHARED - _set(
    """engine framework compiler backend frontend orchestrator scheduler broker registry encoding
    method provider username password"""
) | _set("tag member medication child sibling friend skill hobby interest alias")
# What is measured once, where its owner states it as a fact.
DIMENSIONS: Final = _set("height length width depth diameter density")
# With one of these before it an attribute is one of its sort: `favourite colour`.
SINGLING: Final = _set("favourite favorite preferred default primary main only")
# Settings of the one system that is spoken of, which is not named.
CONFIGURED: Final = _set(
    """branch region timeout port retention threshold encoding timezone runtime schema protocol
    subnet mode"""
)
CONFIGURED_PAIRS: Final = frozenset(
    tuple(pair.split())
    for pair in """log level|cache size|pool size|batch size|page size|heap size|sampling rate
    |frame rate|upload limit|download limit|rate limit|memory limit|isolation level|coding style
    """.replace("\n", "").split("|")
)
# Of these a thing has one, whenever it is looked at, although it is an amount, a level or a place.
SETTING: Final = frozenset(
    tuple(pair.split())
    for pair in """log level|cache size|pool size|batch size|page size|heap size|sampling rate
    |frame rate|bit rate|tax rate|interest rate|exchange rate|delivery address|billing address
    |postal address|home address|start time|end time|due time|sample rate|sampling frequency
    |list price|ticket price|maximum size|minimum size|maximum length|minimum length|password length
    |storage location|mailing address|ip address|mac address|email address|departure time
    |arrival time|unit price|fixed price|purchase price|service level|severity level|security level
    |code status|marital status|legal status|date of birth|due date|effective date|expiry date
    |isolation level|credit rating|birth weight|nominal voltage|rated voltage|contract term
    """.replace("\n", "").split("|")
    if pair.strip()
)
# A place may lie in the other one: `lives in Norway`, `lives in Oslo`.
PLACED: Final = frozenset(pair for pair in FUNCTIONAL if pair[1] == "in" and pair[0] != "written")
# Flags that a thing keeps, beside those that end in `-able`.
FLAGS: Final = _set(
    """required mandatory optional renewal exempt public private readonly vegetarian vegan"""
)
# States that come and go.
TRANSIENT: Final = _set(
    """open closed full empty on off up down busy idle online offline available unavailable active
    inactive connected disconnected healthy unhealthy occupied vacant free locked unlocked running
    stopped paused present absent awake asleep conscious stable late delayed blocked slow fast wet
    dry hot cold warm clean dirty dark bright hungry tired sick well feverish nauseous swollen red
    green blue here there home away ready loaded visible quiet loud reachable pending resolved"""
)
# Nouns whose value says which one it is. Another value is another thing, unless it is named beside.
IDENTIFYING: Final = _set(
    """number id identifier name title reference ref code serial sku key isbn subject label heading
    topic no. nr uuid slug index case tag handle"""
)
PARTS: Final = _set("section chapter page figure table appendix article paragraph clause line row")
# A number behind one of these points to another record.
REFERENCES: Final = _set(
    """section chapter page figure table appendix ticket issue case order invoice item line row step
    task commit article paragraph record entry part phase week sprint round episode lesson question
    answer example note meeting claim batch lot sample patient customer employee student user
    account number id no entry pull request volume experiment trial run shipment parcel job
    incident contract project request booking reservation"""
)
# Fields of a record that say which one it is, or when it was so.
WHICH: Final = _set(
    """date time timestamp ts at when day month year quarter week period season hour version env
    environment region locale lang language scope line row pos position index idx seq sequence
    attempt round leg heat lap kind category event action message msg text note comment description
    content body sentence quote question answer field attribute measure metric"""
)
# Fields that a row has once, and the thing it is about in several rows.
VARIED: Final = _set(
    """email phone country type room grade unit url path host hostname database branch method plan
    category class code domain model"""
)
# What many rows point to by an id: it does not say which row this is.
POINTED_TO: Final = _set(
    """session trace request run job query thread conversation user customer client account project
    tenant org organization organisation team device host parent group agent node process"""
)
# Fields that describe, so that one in front does not name what the others are of.
QUALITIES: Final = _set("color colour material language dose dosage reason payment role allergy")
# Fields of which a record has one, beside the attributes of a thing.
RECORDED: Final = _set(
    """firmware jurisdiction law cap currency kickoff total birthdate dob birthday born nationality
    tz timezone licence license iban bic winner venue captain rent deposit penalty warranty notice
    retention aircraft registration manufacturer make encoding"""
) | {"governing law", "liability cap", "date of birth", "year of birth", "place of birth",
     "listen port", "auto renewal", "due date", "term", "payment term"}  # fmt: skip
NUMBERS: Final = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14,
    "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20,
    "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90, "hundred": 100,
    "once": 1, "twice": 2,
}  # fmt: skip
DAYS: Final = {
    name + end: number
    for number, name in enumerate(
        ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    )
    for end in ("", "s")
}
MONTHS: Final = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march", "april apr", "may", "june jun", "july jul",
         "august aug", "september sep sept", "october oct", "november nov", "december dec"), 1
    )
    for name in names.split()
}  # fmt: skip
_SECOND: Final = 1.0
UNITS: Final[dict[str, tuple[str, float]]] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), ("second", _SECOND)),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), ("second", 0.001)),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), ("second", 60.0)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), ("second", 3_600.0)),
    **dict.fromkeys(("day", "days"), ("second", 86_400.0)),
    **dict.fromkeys(("week", "weeks"), ("second", 604_800.0)),
    **dict.fromkeys(("month", "months"), ("month", 1.0)),
    **dict.fromkeys(("year", "years", "yr", "yrs"), ("month", 12.0)),
    **dict.fromkeys(("kb", "kilobyte", "kilobytes"), ("byte", 1e3)),
    **dict.fromkeys(("mb", "megabyte", "megabytes"), ("byte", 1e6)),
    **dict.fromkeys(("gb", "gigabyte", "gigabytes"), ("byte", 1e9)),
    **dict.fromkeys(("tb", "terabyte", "terabytes"), ("byte", 1e12)),
    "kib": ("byte", 1024.0), "mib": ("byte", 1024.0**2), "gib": ("byte", 1024.0**3),
    **dict.fromkeys(("byte", "bytes"), ("byte", 1.0)),
    **dict.fromkeys(("mg", "milligram", "milligrams"), ("gram", 0.001)),
    **dict.fromkeys(("g", "gram", "grams"), ("gram", 1.0)),
    **dict.fromkeys(("kg", "kilo", "kilos", "kilogram", "kilograms"), ("gram", 1_000.0)),
    **dict.fromkeys(("tonne", "tonnes"), ("gram", 1e6)),
    **dict.fromkeys(("mm", "millimetre", "millimetres", "millimeters"), ("metre", 0.001)),
    **dict.fromkeys(("cm", "centimetre", "centimetres", "centimeters"), ("metre", 0.01)),
    **dict.fromkeys(("m", "metre", "metres", "meter", "meters"), ("metre", 1.0)),
    **dict.fromkeys(("km", "kilometre", "kilometres", "kilometers"), ("metre", 1_000.0)),
    **dict.fromkeys(("ml", "millilitre", "millilitres", "milliliters"), ("litre", 0.001)),
    **dict.fromkeys(("litre", "litres", "liter", "liters"), ("litre", 1.0)),
    **dict.fromkeys(("percent", "%"), ("percent", 1.0)),
    **dict.fromkeys(("euro", "euros", "eur", "€"), ("euro", 1.0)),
    **dict.fromkeys(("dollar", "dollars", "usd", "$"), ("dollar", 1.0)),
    **dict.fromkeys(("pound", "pounds", "gbp", "£"), ("pound", 1.0)),
    **dict.fromkeys(("cent", "cents"), ("cent", 1.0)),
    **dict.fromkeys(("degree", "degrees", "°c", "celsius"), ("degree", 1.0)),
    **dict.fromkeys(("kw", "kilowatt", "kilowatts"), ("watt", 1_000.0)),
    **dict.fromkeys(("w", "watt", "watts"), ("watt", 1.0)),
    **dict.fromkeys(("v", "volt", "volts"), ("volt", 1.0)),
}  # fmt: skip
MULTIPLIERS: Final = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "k": 1e3}

# A word and its opposite are one word, said or denied.
OPPOSITES: Final = {
    "disabled": "enabled", "disable": "enable", "disables": "enables", "off": "on",
    "forbidden": "allowed", "forbids": "allows", "forbid": "allow", "denied": "allowed",
    "prohibited": "allowed", "permitted": "allowed", "banned": "allowed",
    "optional": "required", "mandatory": "required", "voluntary": "required",
    "private": "public", "inactive": "active", "unsupported": "supported", "false": "true",
    "asynchronous": "synchronous", "unsafe": "safe", "invalid": "valid",
    "unavailable": "available", "immutable": "mutable", "excludes": "includes",
    "exclude": "include", "excluded": "included", "lacks": "has", "rejects": "accepts",
    "reject": "accept", "refuses": "accepts", "fails": "passes", "unpaid": "paid",
    "unlimited": "limited", "unlocked": "locked", "offline": "online", "absent": "present",
    "ineligible": "eligible", "impossible": "possible",
    "nonrefundable": "refundable", "non-refundable": "refundable", "unverified": "verified",
    "incomplete": "complete", "unsigned": "signed", "unencrypted": "encrypted",
    "decreased": "increased", "decreases": "increases", "fell": "rose", "negative": "positive",
    "vacant": "occupied", "closed": "open", "insecure": "secure", "unhealthy": "healthy",
    "single": "married", "dead": "alive", "empty": "full", "disconnected": "connected",
    "discontinued": "available", "taxable": "exempt", "malignant": "benign", "indoor": "outdoor",
    "indoors": "outdoors",
}  # fmt: skip
_SAME = frozenset({"mandatory", "permitted"})  # the word it is mapped to, not the opposite of it
AFFIRMED: Final = _SAME

# Of one group a thing is one at a time.
GROUPS: Final = {
    word: name
    for name, words in {
        "colour": "red green blue yellow black white orange purple grey gray pink brown beige teal",
        "pace": "hourly daily weekly fortnightly biweekly monthly quarterly yearly annually",
        "theme": "dark light",
        "system": "metric imperial",
        "indent": "tabs spaces",
        "level": "low medium high critical",
        "rank": "bronze silver gold platinum",
        "plan": "free basic pro premium enterprise",
        "state": """pending shipped delivered cancelled canceled refunded resolved open closed
            merged draft approved rejected paused running stopped archived""",
        "side": "left right",
        "blood": "a+ a- b+ b- ab+ ab- o+ o-",
        "season": "spring summer autumn winter",
        "sex": "male female",
        "way": "north south east west",
        "drink": "vegan vegetarian",
        "size": "small large",
        "clock": "morning afternoon evening",
    }.items()
    for word in words.split()
}
ADJECTIVE_ENDINGS: Final = (
    "able", "ible", "ful", "ous", "ive", "less", "ish", "ing", "ant", "ent", "ary", "ly", "ed",
)  # fmt: skip
LINKS: Final = _set("and or with but because , ( ) / which that who as plus including like such so")

OBLIGING: Final = _set("must should shall need needs needed required requires require")
# Words that join others and say nothing of their own: no part of a frame.
JOINING: Final = (
    COPULAS
    | ARTICLES
    | FILLERS
    | APPROXIMATE
    | AUXILIARIES
    | _set(
        """of for by in on at to with per as has have had been being there can will shall may
        bears bear fixed set shows show
        lives located based long measures measured carries carried lies stands amounts amount
        comes our my your their its
        his her we us you i also who which that so then both each any all it"""
    )
)
# Words that tell things of one sort apart, as numbers and names do.
ORDINALS: Final = _set(
    """first second third fourth fifth sixth seventh eighth ninth tenth last next previous final
    left right upper lower top bottom front back inner outer north south east west northern southern
    eastern western old new primary secondary main spare"""
)
FIRST_PERSON: Final = _set("i my me mine we us")
PLURALS: Final = {"children": "child", "people": "person", "men": "man", "women": "woman"}
IRREGULAR: Final = {
    "paid": "pay", "sent": "send", "held": "hold", "kept": "keep", "built": "build",
    "bought": "buy", "sold": "sell", "taken": "take", "took": "take", "given": "give",
    "gave": "give", "written": "write", "wrote": "write", "chosen": "choose", "led": "lead",
    "made": "make", "found": "find", "ran": "run", "known": "know", "begun": "begin",
    "driven": "drive", "spoken": "speak", "worn": "wear", "met": "meet", "left": "leave",
    **PLURALS,
}  # fmt: skip
# Words that say at which moment or in which sense an amount holds.
CIRCUMSTANCES: Final = _set(
    """admission discharge baseline follow-up intake start end begin peak mean average median max
    min maximum minimum net gross total subtotal estimated planned actual forecast budgeted expected
    projected initial current original early late before after fasting resting standing indoor
    outdoor day night per each extra additional child adult single double return one-way off-peak"""
)
# A sentence with none of these states nothing that could be compared.
TELLING: Final = (COPULAS | STATIVE | MODALS | NAMING | LIMITS | NEGATIONS) - {"one"}
