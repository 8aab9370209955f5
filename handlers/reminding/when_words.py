"""The words for days and times in English, German and Russian, for `handlers.reminding.when`: tables and nothing else.

Everything is lower case and a regular expression; whoever matches adds the word's end.
"""

DAY_NAMES = (
    r"monday|montag|понедельник|пн",
    r"tuesday|dienstag|вторник|вт",
    r"wednesday|mittwoch|сред[ау]|ср",
    r"thursday|donnerstag|четверг|чт",
    r"friday|freitag|пятниц[ау]|пт",
    r"saturday|samstag|sonnabend|суббот[ау]|сб",
    r"sunday|sonntag|воскресенье|вс",
)
DAY_SHORTS = (
    r"mon?",
    r"tues?|di",
    r"wed|mi",
    r"thu(?:rs)?|do",
    r"fri?",
    r"sat?",
    r"sun|so",
)
"""Many are words of their own: only after "every", "on" and the like."""

DAY_PLURALS = (
    r"(?:on\s+)?mondays|montags|по\s+понедельникам",
    r"(?:on\s+)?tuesdays|dienstags|по\s+вторникам",
    r"(?:on\s+)?wednesdays|mittwochs|по\s+средам",
    r"(?:on\s+)?thursdays|donnerstags|по\s+четвергам",
    r"(?:on\s+)?fridays|freitags|по\s+пятницам",
    r"(?:on\s+)?saturdays|samstags|sonnabends|по\s+субботам",
    r"(?:on\s+)?sundays|sonntags|по\s+воскресеньям",
)
"""That mean every week by themselves."""

MONTHS = (
    r"jan(?:uary|uar)?|jänner|январ[ья]|янв",
    r"feb(?:ruary|ruar)?|феврал[ья]|фев",
    r"mar(?:ch)?|märz|марта?",
    r"apr(?:il)?|апрел[ья]|апр",
    r"may|mai|ма[йя]",
    r"june?|juni|июн[ья]",
    r"july?|juli|июл[ья]",
    r"aug(?:ust)?|августа?|авг",
    r"sep(?:t(?:ember)?)?|сентябр[ья]|сен",
    r"oct(?:ober)?|okt(?:ober)?|октябр[ья]|окт",
    r"nov(?:ember)?|ноябр[ья]|ноя",
    r"dec(?:ember)?|dez(?:ember)?|декабр[ья]|дек",
)

HOURS = (
    r"one|eins?|час",
    r"two|zwei|дв[ае]",
    r"three|drei(?!\s*viertel)|три",
    r"four|vier|четыре",
    r"five|fünf|пять",
    r"six|sechs|шесть",
    r"seven|sieben|семь",
    r"eight|acht|восемь",
    r"nine|neun|девять",
    r"ten|zehn|десять",
    r"eleven|elf|одиннадцать",
    r"twelve|zwölf|двенадцать",
)
COUNTS = (r"an?|one|eine[mnr]?|ein|один|одну", *HOURS[1:])
"""How many, from one to twelve."""

UNITS = {
    "second": r"seconds?|secs?|s|sekunden?|sek\.?|секунд[уы]?|сек\.?",
    "minute": r"minutes?|mins?\.?|m|minuten?|минут[уы]?|мин\.?",
    "hour": r"hours?|hrs?|h|stunden?|std\.?|час(?:а|ов)?|ч",
    "day": r"days?|d|tag(?:en?)?|день|дня|дней",
    "week": r"weeks?|w|wochen?|недел[юи]|недель",
    "month": r"months?|monat(?:en?)?|месяц(?:а|ев)?",
    "year": r"years?|jahr(?:en?)?|года?|лет",
}

HALVES = {
    r"in\s+half\s+an\s+hour|in\s+einer\s+halben\s+stunde|через\s+полчаса": 30,
    r"in\s+an\s+hour\s+and\s+a\s+half|in\s+(?:anderthalb|eineinhalb)\s+stunden|через\s+полтора\s+часа": 90,
}
"""Minutes."""

RELATIVE_DAYS = {
    r"the\s+day\s+after\s+tomorrow|day\s+after\s+tomorrow|übermorgen|послезавтра": 2,
    r"today|heute|сегодня": 0,
    r"tomorrow|morgen|завтра": 1,
}

PARTS = {
    "morning": (r"(?:in\s+the\s+|this\s+)morning|(?:am\s+)morgen|morgens|утром", r"morning|früh|morgen|утра"),
    "noon": (
        r"(?:at\s+)?(?:noon|midday)|(?:am\s+|um\s+)mittag|mittags|в\s+полдень",
        r"mittag",
    ),
    "afternoon": (
        r"(?:in\s+the\s+|this\s+)afternoon|(?:am\s+)nachmittag|nachmittags|дн[её]м",
        r"afternoon|nachmittag|дня",
    ),
    "evening": (
        r"(?:in\s+the\s+|this\s+)evening|(?:am\s+)abend|abends|вечером",
        r"evening|abend|вечера",
    ),
    "night": (r"(?:at\s+)?midnight|(?:um\s+)?mitternacht|в\s+полночь", r"nachts|ночи"),
}
"""Of a day: how it is said anywhere, and how only right after a day or an hour."""

TONIGHT = r"tonight"

PART_HOURS = {"morning": 9, "noon": 12, "afternoon": 15, "evening": 19, "night": 0}

AT = {
    "en": (r"(?:at\s+|@\s*)", r"(?P<suffix>a\.?m\.?|p\.?m\.?|o['’]clock)"),
    "de": (r"(?:um|gegen|ab)\s+", r"(?P<suffix>uhr(?:\s+(?P<minute2>[0-5]\d))?)"),
    "ru": (r"(?:в|во|к)\s+", r"(?P<suffix>час(?:а|ов)?)"),
}
"""Before an hour, and what may stand behind it then."""

BARE_SUFFIX = r"(?P<suffix>a\.?m\.?|p\.?m\.?|o['’]clock|uhr(?:\s+(?P<minute2>[0-5]\d))?|h|час(?:а|ов)?)"
PART_SUFFIX = r"утра|дня|вечера|ночи|morgens|abends"
"""Behind an hour that has nothing before it."""

HALF = {r"(?:(?:um|gegen)\s+)?halb": -1, r"(?:at\s+)?half\s+past": 0}
"""To half of the hour before, or of the one that is named."""

ON = r"on|am|den|this|diesen|в|во|эт(?:от|у|о)"
ON_DATE = r"on\s+the|on|am|den|the|на"
ON_THE = r"on\s+the|am|den|zum"
NEXT = r"next|nächste[nr]?|kommende[nr]?|(?:в\s+)?следующ(?:ий|ую|ее)"
AND = r",|and|und|и|&"
EVERY = r"every|each|jede[nrs]?|alle|кажд(?:ый|ую|ое|ые)"
OTHER = r"other|second|zweite[nrs]?|втор(?:ой|ую|ое)"

REPEATED = {
    "DAILY": r"daily|täglich|ежедневно",
    "WEEKLY": r"weekly|wöchentlich|еженедельно",
    "MONTHLY": r"monthly|monatlich|ежемесячно",
    "YEARLY": r"yearly|annually|jährlich|ежегодно",
}
ON_WEEKDAYS = r"(?:on\s+)?weekdays|werktags|an\s+werktagen|по\s+будням"
WEEKDAY = r"weekday|workday|werktag|будний\s+день"

EVERY_PART = {"morning": r"morning|morgen|утро", "evening": r"evening|abend|вечер"}

BEFORE = (
    r"(?:please\s+)?(?:remind\s+)?me|(?:bitte\s+)?(?:erinnere?\s+)?mich"
    r"|(?:пожалуйста,?\s+)?напомни(?:те)?(?:\s+мне)?|мне"
)
"""What may stand before the time without meaning anything."""

BEFORE_TEXT = r"to|that|daran|dass|что"
"""What may stand before the text."""
