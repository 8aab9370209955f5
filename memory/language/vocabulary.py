"""Word lists in English, German and Russian, as data. No code decides here.

Words are lower case with ё written as е; a word may stand in several lists.
"""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


STOP_WORDS: dict[str, frozenset[str]] = {
    "en": _set(
        """
        a about above after again all also am an and any are aren't as at be because been before being below both but
        by can can't cannot could couldn't did didn't do does doesn't doing don't down each even ever few for from get
        got had has have having he her here hers herself him himself his how i i'd i'll i'm i've if in into is isn't it
        it's its itself just let me more most my myself no nor not now of off on once only or other our ours out over
        own please same she should so some such than that that's the their theirs them then there these they this those
        through to too under until up upon us very was we were what when where which while who whom whose why will with
        would you your yours yourself yourselves about ask asked know known knows mean means remember remind reminded
        said say says tell tells think thought told want wanted wants thing things something anything everything one
        really still maybe perhaps much many lot may might must shall
                """
    ),
    "de": _set(
        """
        ab aber alle allem allen aller alles als also am an ander andere anderen auch auf aus bei beim bin bis bist da
        damit dann das dass dasselbe dazu dein deine deinem deinen deiner dem den denn der des dessen dich die dies
        diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er es etwas euch euer
        eure fuer für gegen gewesen hab habe haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem
        ihren ihrer im immer in ins ist ja jede jedem jeden jeder jedes jetzt kann kannst kein keine keinem keinen
        keiner können könnte man manche mal mehr mein meine meinem meinen meiner meines mich mir mit muss nach nein
        nicht nichts noch nun nur ob oder ohne schon sehr sein seine seinem seinen seiner seit sich sie sind so solche
        soll sollte sondern sonst über um und uns unser unsere unter viel viele vom von vor war waren warum was weil
        weiter welche welchem welchen welcher welches wenn wer werde werden wie wieder will wir wird wirst wo wollen
        würde würden zu zum zur zwar zwischen bitte eben halt wohl vielleicht mag möchte möchtest sag sagen sagte
        gesagt erinnere erinnerst erinnern weiss weisst weiß weißt wissen denke denkst meinst meine sache sachen ding
        dinge hast wurde woran worüber wovon heute
                """
    ),
    "ru": _set(
        """
        а без более больше будет будто бы был была были было быть в вам вас вдруг ведь во вот впрочем все всегда всего
        всех всю вы где да даже для до другой его ее ей ему если есть еще ж же за зачем здесь и из или им иногда их к
        как какая какие какой какую когда конечно кто куда ли лучше между меня мне много может можно мой моя мое мои
        мою моего моей моему моем моим моих мы на над надо наконец нас не него нее ней нельзя нет ни нибудь никогда ним
        них ничего но ну о об один он она они опять от перед по под после потом потому почти при про раз разве с сам
        самый себе себя сейчас со совсем так такой там твой твоя твое твои твою твоего твоей тебе тебя тем теперь то
        тогда того тоже только том тот тут ты у уж уже хорошо хоть чего чей чем через что чтоб чтобы чуть эта эти это
        этого этой этом этот эту я пожалуйста помнишь помни запомни напомни скажи сказал сказала говорил говорила знаешь
        знаю думаешь думаю хочу хочешь просто очень вообще ваш ваша ваше ваши вашу вашего вашей наш наша наше наши
        сегодня
                """
    ),
}

FUNCTION_WORDS: frozenset[str] = _set(
    """
    a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to
    was will with i you he she we my your his her our me him us them what when where who which how why did do does has
    have had would could should about from
    der die das den dem des ein eine einen einem einer eines und oder aber nicht kein keine ist sind war waren wird hat
    habe haben hatte bin bist in im am an auf aus bei mit nach von vom zu zum zur für um als wie wo wer was wann warum
    welche welcher welches wem wen ich du er es sie wir ihr mich mir dich dir ihn ihm uns euch mein meine meinen meinem
    meiner dein deine deinen sein seine ihre unser unsere sich dass wenn ob auch so da es
    и в во не на я с со как а то он она оно они мы вы ты что где кто когда почему какой какая какие какое какую чем чей
    мой моя мое мои моего моей мне меня твой твоя его ее их нас вас нам вам ему ей им у к ко по за из от о об до для
    это этот эта эти был была было были есть ли бы же но или да нет так
        """
)
"""Words that only hold a sentence together: of no use in an index. Few, as a message is short and each word counts."""

SAYING: frozenset[str] = _set(
    """
    suggest suggested recommend recommended propose proposed advise advised advice explain explained write wrote give
    gave list listed told answered answer provide provided
    empfohlen empfiehlst vorgeschlagen geraten erklärt geschrieben gegeben genannt geantwortet erzählt
    посоветовал посоветовала предложил предложила рекомендовал рекомендовала объяснил объяснила написал написала дал
    дала ответил ответила рассказал рассказала
        """
)
"""With "you": what the assistant did."""

SECOND_PERSON: frozenset[str] = _set(
    """
    you your yours du dein deine deinen deinem deiner dir dich ihr euer eure sie ты тебе тебя твой твоя вы вас вам ваш
        """
)

SMALL_TALK: frozenset[str] = _set(
    """
    hi hello hey hiya howdy yo morning afternoon evening night good great nice fine cool ok okay okey k kk yes yeah yep
    yup no nope nah thanks thank thx ty cheers bye goodbye cya later see soon welcome sorry oops wow lol haha hahaha
    hehe hmm hm huh sure alright right perfect awesome super well done day going doing sup whats test
    hallo hi hey moin servus grüß gruss grüss gott guten gute guter gutes morgen tag abend nacht danke dank dankeschön
    vielen tschüss tschüs ciao bis später bald okay jo jup jep nö nee ach aha genau klar super toll prima gut schön
    na alles gern gerne willkommen entschuldigung sorry geht gehts geht's los
    привет приветик здравствуй здравствуйте добрый доброе доброй добрая утро день вечер ночи ночь спасибо благодарю
    пожалуйста пока досвидания свидания увидимся ок окей ага угу да нет неа ладно хорошо отлично супер класс круто
    понял поняла понятно ясно большое спокойной дела делишки извини извините прости простите ха хаха ахах ого
        """
)
"""Greetings, thanks and assent: with nothing else beside them a message asks nothing of memory."""

FIRST_PERSON: frozenset[str] = _set(
    """
    i i'm i've i'd i'll me my mine myself
    ich mein meine meinem meinen meiner meines mich mir
    я меня мне мной мой моя мое мои мою моего моей моему моем моим моих
        """
)

CONCEPTS: dict[str, str] = {
    "dog": "dog puppy hund hündin hundchen собака собаку собаки пес пса песик щенок щенка",
    "cat": "cat kitten kitty katze kater kätzchen кошка кошку кот кота котенок котенка",
    "horse": "horse pferd stute лошадь лошади лошадью конь коня",
    "bird": "bird parrot vogel papagei wellensittich птица попугай попугая",
    "hamster": "hamster хомяк хомяка",
    "rabbit": "rabbit bunny kaninchen hase кролик кролика",
    "fish": "fish goldfish fisch goldfisch рыбка рыбку",
    "pet": "pet haustier питомец питомца",
    "mother": "mother mom mum mutter mama мама маму мать",
    "father": "father dad vater papa папа папу отец отца",
    "sister": "sister schwester сестра сестру",
    "brother": "brother bruder брат брата",
    "daughter": "daughter tochter дочь дочка дочку дочери",
    "son": "son sohn сын сына",
    "child": "child kid kind ребенок ребенка",
    "wife": "wife frau ehefrau жена жену",
    "husband": "husband mann ehemann муж мужа",
    "partner": "partner girlfriend boyfriend partnerin freundin freund девушка девушку парень парня",
    "friend": "friend buddy kumpel друг друга подруга подругу",
    "boss": "boss manager chef chefin начальник начальника босс босса",
    "doctor": "doctor arzt ärztin hausarzt врач врача",
    "teacher": "teacher lehrer lehrerin учитель учителя учительница",
    "colour": "colour color farbe цвет цвета",
    "food": "food dish meal essen gericht speise еда блюдо",
    "drink": "drink beverage getränk напиток",
    "film": "film movie kinofilm фильм кино",
    "book": "book buch книга книгу",
    "song": "song lied песня песню",
    "band": "band musikgruppe группа группу",
    "city": "city town stadt город",
    "country": "country land страна страну",
    "animal": "animal tier животное зверь",
    "number": "number zahl nummer число номер",
    "season": "season jahreszeit сезон",
    "sport": "sport sports sportart спорт",
    "team": "team mannschaft команда команду",
    "favourite": "favourite favorite lieblings любимый любимая любимое любимую",
    "birthday": "birthday geburtstag geburtsdatum рождения",
    "phone": "phone telephone mobile cellphone telefon telefonnummer handynummer handy телефон телефона",
    "email": "email mail e-mail emailadresse mailadresse почта почты",
    "address": "address adresse anschrift адрес",
    "age": "age alter возраст",
    "height": "height größe körpergröße рост",
    "weight": "weight gewicht вес",
    "shoe": "shoe shoes schuhgröße schuh обуви",
    "blood": "blood blutgruppe крови",
    "job": "job profession occupation beruf работа профессия должность",
    "employer": "employer company firma arbeitgeber работодатель компания",
    "hometown": "hometown birthplace heimatstadt geburtsort родина",
    "car": "car auto wagen машина машину автомобиль",
    "live": "live lives lived living moved reside wohne wohnt wohnst wohnen gewohnt lebe lebst lebt leben umgezogen "
    "gezogen живу живет живешь живете жить жил жила переехал переехала",
    "work": "work works worked working arbeite arbeitet arbeitest arbeiten работаю работает работаешь работать",
    "born": "born geboren родился родилась",
    "allergic": "allergic allergy allergies allergisch allergie allergien аллергия аллергию аллергик аллергии",
    "name": "name names named called heiße heisst heißt heißen heißen namen зовут имя имени звать",
    "nut": "nut nuts nuss nüsse орех орехи орехов",
    "peanut": "peanut peanuts erdnuss erdnüsse арахис арахиса",
    "vegetarian": "vegetarian vegetarier vegetarierin vegetarisch вегетарианец вегетарианка",
    "vegan": "vegan veganer veganerin веган веганка",
    "diabetes": "diabetes diabetic diabetiker diabetikerin диабет диабетик",
}
"""What the same thing is called in the three languages: "~dog" is one key for all of a line."""

PETS = _set("dog cat horse bird hamster rabbit fish pet")
PEOPLE_AND_PETS = PETS | _set(
    "mother father sister brother daughter son child wife husband partner friend boss doctor teacher"
)
"""Concepts that carry a name: "my sister is Anna" names her."""

SINGLE_VALUED: frozenset[str] = _set("birthday phone email address age height weight shoe blood job employer hometown")
"""Concepts of which a person has one at a time: "my X is Y" replaces another Y."""

NAMES_THAT_ARE_WORDS: frozenset[str] = _set(
    """
    mark rose will grace hope faith joy lily daisy ivy olive ruby pearl jade robin hunter mason frank jack art bill bob
    rob sue pat drew dawn eve crystal iris heather hazel holly ginger rusty sandy chip dusty lucky rocky bear buddy
    shadow angel autumn summer brook charity chase chance clay cliff cole dale dean destiny earnest felicity fern flora
    forest gene gay glen grant guy harmony harry heath honey jay jasmine jean jewel june king lance laurel lee major
    mercy melody miles misty nick norm patience penny peg poppy prince princess ray rich rod rosemary sage sky skip
    star sterling stormy susan tiger trinity tray victor violet wade ward wolf young baker cook carter fisher smith
    target shell gap oracle visa meta reading bath nice mobile orange buffalo phoenix cork sandwich deal rugby
    essen halle bär wolf ernst stern mark rose kiel hagen hof singen siegen münster baden kassel worms eisen löwe adler
    fuchs vogel falke blume sonne stein berg wald heide linde lilie viola engel schatz prinz maus spatz hase flocke
    keks krümel bauer müller schneider fischer weber koch richter klein groß lang kurz jung reich stark sommer winter
    вера надежда любовь роза лев слава мир роман марк майя орел лилия маргарита виктория победа светлана злата мила
    лада ангел тигр пушок рыжик снежок уголек дружок малыш жук волк заяц воробей белка ласточка дымка искра
        """
)
"""Given names, pets, companies and towns that are words of every day as well."""

ARTICLES: frozenset[str] = _set(
    """
    a an the this that these those
    der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner dieser diese dieses diesen
    diesem jeder jede jedes jeden jedem zum zur im beim vom ins am
        """
)
"""Words after which, at once or with one word between, a word with a capital is a noun."""

MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
"""The concepts of the months, in order."""

ORDINARY_VALUES: dict[str, str] = {
    "red": "red rot rote roter rotes roten красный красная красное",
    "green": "green grün grüne grüner grünes grünen зеленый зеленая зеленое",
    "blue": "blue blau blaue blauer blaues blauen синий синяя синее голубой голубая",
    "yellow": "yellow gelb gelbe gelber желтый желтая желтое",
    "orange": "orange orangefarben оранжевый оранжевая",
    "purple": "purple violet lila violett фиолетовый лиловый",
    "pink": "pink rosa розовый розовая",
    "brown": "brown braun braune brauner коричневый коричневая",
    "black": "black schwarz schwarze schwarzer черный черная черное",
    "white": "white weiß weiss weiße weißer белый белая белое",
    "grey": "grey gray grau graue grauer серый серая серое",
    "turquoise": "turquoise teal cyan türkis бирюзовый",
    "gold": "gold golden золотой",
    "silver": "silver silbern silber серебряный",
    "beige": "beige бежевый",
    "january": "january januar январь января январе",
    "february": "february februar февраль февраля феврале",
    "march": "march märz март марта марте",
    "april": "april апрель апреля апреле",
    "may": "may mai май мая мае",
    "june": "june juni июнь июня июне",
    "july": "july juli июль июля июле",
    "august": "august август августа августе",
    "september": "september сентябрь сентября сентябре",
    "october": "october oktober октябрь октября октябре",
    "november": "november ноябрь ноября ноябре",
    "december": "december dezember декабрь декабря декабре",
    "monday": "monday mondays montag montags понедельник",
    "tuesday": "tuesday tuesdays dienstag dienstags вторник",
    "wednesday": "wednesday wednesdays mittwoch mittwochs среда среду",
    "thursday": "thursday thursdays donnerstag donnerstags четверг",
    "friday": "friday fridays freitag freitags пятница пятницу",
    "saturday": "saturday saturdays samstag samstags sonnabend суббота субботу",
    "sunday": "sunday sundays sonntag sonntags воскресенье",
    "spring": "spring frühling frühjahr весна",
    "summer": "summer sommer лето",
    "autumn": "autumn fall herbst осень",
    "winter": "winter зима",
    "pizza": "pizza пицца",
    "pasta": "pasta noodles nudeln паста макароны",
    "rice": "rice reis рис",
    "soup": "soup suppe суп",
    "bread": "bread brot хлеб",
    "cheese": "cheese käse сыр",
    "meat": "meat fleisch мясо",
    "chicken": "chicken hähnchen huhn курица",
    "egg": "egg eggs ei eier яйцо яйца",
    "apple": "apple apples apfel äpfel яблоко яблоки",
    "chocolate": "chocolate schokolade шоколад",
    "cake": "cake kuchen торт пирог",
    "salad": "salad salat салат",
    "potato": "potato potatoes kartoffel kartoffeln картошка",
    "tea": "tea tee чай",
    "coffee": "coffee kaffee кофе",
    "milk": "milk milch молоко",
    "water": "water wasser вода",
    "beer": "beer bier пиво",
    "wine": "wine wein вино",
    "juice": "juice saft сок",
    "football": "football soccer fußball футбол",
    "tennis": "tennis теннис",
    "chess": "chess schach шахматы",
    "swimming": "swimming schwimmen плавание",
    "running": "running laufen бег",
    "music": "music musik музыка",
    "reading": "reading lesen чтение",
    "engineer": "engineer ingenieur ingenieurin инженер",
    "nurse": "nurse krankenschwester pfleger медсестра",
    "student": "student studentin студент студентка",
    "manager": "manager managerin менеджер",
    "cook": "cook koch köchin повар",
    "driver": "driver fahrer водитель",
    "positive": "positive positiv положительная положительный",
    "negative": "negative negativ отрицательная отрицательный",
    "good": "good better best gut gute guter besser хороший хорошая лучше",
    "bad": "bad worse schlecht schlechte плохой плохая",
    "new": "new neu neue neuer neues новый новая новое",
    "old": "old alt alte alter altes старый старая старое",
    "dark": "dark dunkel dunkles dunkler темный темно",
    "light": "light hell helles heller светлый светло",
    "big": "big large groß große großer большой",
    "small": "small little klein kleine kleiner маленький",
}
"""Common values that say nothing by themselves: they give a fact away only beside what it is about."""
