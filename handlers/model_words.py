"""The words by which a message shows how hard it is, in English, German and Russian, as data. No code decides here.

Lower case, ё written as е. Words are compared by their stems, so one form of each is enough; what begins with a stem
of `BEGINNINGS` counts too, for compounds ("Verhandlungsstrategie"). Phrases stand in the text as they are.
"""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _lines(phrases: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in phrases.strip().splitlines())


WEIGHTY = _set(
    """
    architecture refactor redesign trade-off tradeoff strategy roadmap scalability migrate migration threat compliance
    restructure concept hypothesis hypotheses scenario deadlock bottleneck consequence implication negotiate negotiation
    diligence feasibility critique disaster root-cause analyse analyze analysis evaluate assess prioritise prioritize
    optimise optimize debug architektur refaktorieren refactoring strategie skalieren skalierung migrieren migration
    bedrohungsanalyse konzept hypothese szenario szenarien folgen auswirkungen verhandeln verhandlung analysieren
    analysiere bewerte bewerten beurteile beurteilen abwägen abwägung priorisieren priorisiere optimieren optimiere
    entwirf entwerfen debuggen engpass machbarkeit umstrukturieren
    архитектура архитектурный рефакторинг рефакторить стратегия масштабировать масштабирование миграция мигрировать
    угроза концепция гипотеза сценарий последствия переговоры проанализируй проанализировать анализ оцени оценить
    взвесить приоритет приоритезировать оптимизируй оптимизировать спроектируй спроектировать отладить первопричина
    раскритикуй реструктуризация
    """
)
"""Of the trade of planning and judging: one of them asks for thought."""

THOUGHTFUL = _set(
    """
    risk plan design compare weigh justify approach structure options alternatives recommendation requirement budget
    timeline long-term step-by-step detailed review explain consider tax liability investor invest interest contract
    clause legal ethical prove propose rollback downtime consistency vendor monolith microservices pension decision
    scale production hypothesis data objection argument
    risiko risiken plane planen vergleiche vergleichen begründe begründen aufbauen möglichkeiten alternativen empfehlung
    anforderungen budget zeitplan langfristig ausführlich prüfe prüf klausel vertrag steuern haftung investor
    investieren
    zinsen erarbeite entwickle überarbeite erstelle erstell rechtsform altersvorsorge entscheidungsvorlage vorgehen
    nachteile vorteile ausfall konsistenz anbieter monolith microservices kubernetes ursache last argumente einwände
    daten rechtlich ethisch
    риск план спланируй сравни сравнить обоснуй обосновать выстроить варианты альтернативы рекомендация
    требования бюджет
    маршрут долгосрочный подробный проверь проверить договор пункт налоги ответственность инвестор инвестировать ставка
    разработай составь продумай просчитай переделай учти учет плюсы минусы простой согласованность поставщик монолит
    микросервис докажи предложи аргументы возражения данные юридический этический накопления решение
    """
)
"""Each alone may stand in any favour; several together make a task."""

BEGINNINGS = ("strateg", "architekt", "verhandlung", "bedrohung", "risiko", "notfallk", "ursachen", "vergleich")

WEIGHTY_PHRASES = _lines(
    """
    pros and cons
    trade-off
    trade off
    root cause
    business plan
    go-to-market
    what could go wrong
    step-by-step
    weigh them
    help me decide
    vor- und nachteile
    vor und nachteile
    beim abwägen
    businessplan
    плюсы и минусы
    бизнес-план
    подводные камни
    пошаговый план
    взаимная блокировка
    """
)

WEIGHING = _lines(
    """
    long term
    which one would you
    should we
    should i
    is it wiser
    think through
    work through
    how would you
    would break
    sollen wir
    sollten wir
    soll ich
    ist es klüger
    in schritten
    wie würdest du
    was bricht
    open source oder
    rechne
    welchen du nehmen würdest
    und warum
    стоит ли
    что разумнее
    как бы ты
    с нуля
    пошаговый
    что сломается
    и почему
    с учетом
    по шагам
    """
)

SIMPLE = _lines(
    """
    remind me
    remember that
    translate
    spell
    convert
    what does
    what is a
    meaning of
    summarise this in one
    in simple words
    in one sentence
    short
    recipe
    make this sound
    erinner
    merk dir
    übersetz
    wie schreibt man
    was bedeutet
    was ist ein
    formulier
    kurz
    rezept
    in einem satz
    in zwei sätzen
    fass das
    напомни
    запомни
    переведи
    как пишется
    что такое
    что значит
    сделай вежливее
    рецепт
    коротк
    сократи
    в двух предложениях
    до одного предложения
    """
)
"""A favour of a known kind, whatever the words beside it."""

PHATIC = _set(
    """
    help helped talk tomorrow later soon tonight weekend week have best fault bad wait back mind never there care enjoy
    na dann bet deal noted indeed exactly lovely glad happy love sweet brilliant fantastic wonderful correct
    agreed understood
    go ahead sounds will do cheers please amazing dude man mate
    geholfen hilft morgen später nachher wochenende woche schön fehler klasse passt verstehe verstanden kapiert egal
    stimmt richtig läuft einverstanden wünsch wünsche noch wieder zurück klingt mach mache dankeschön moin liebe lieb
    bester beste spitze wunderbar perfekt schade abgemacht freut klaro joa gern geschehen servus
    помогло помог большое огромное завтра позже вечера выходных неделе верно ошибка лучший лучшая неважно
    нормально точно звучит вернулся
    вернулась сделаю давай ясно виноват здорово замечательно прекрасно договорились согласен согласна понятненько
    взаимно пожалуйста встречи спокойной люблю идеально
    """
)
"""Beside greetings and thanks (memory.language.vocabulary.SMALL_TALK): words of which a reply may be all."""

ASSENT = _set(
    """
    yes yeah yep sure ok okay please go ahead ja jo jup klar bitte gern mach да ага угу ок окей давай конечно хорошо
    """
)
"""What takes an offer up: the matter in hand goes on."""

FOLLOWING = _set("why how and why's more again wieso warum weshalb und mehr weiter nochmal зачем почему а и еще дальше")
"""A short message that begins with one of these goes on with what was said before."""

PHATIC_QUESTIONS = _lines(
    """
    how are you
    how's it going
    how is it going
    wie geht
    как дела
    как ты
    как жизнь
    """
)
