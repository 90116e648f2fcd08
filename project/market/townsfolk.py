"""
The other players of the demo, and what they sell: names in many scripts, for searches.

They have no password. They are created in bulk, which sends no signals to guild chats and address books. So the demo
loads the books afterwards, as `manage.py rebuildindex` does.
"""

# ruff: noqa: RUF001
from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import product

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.utils import timezone

from .models import Item, Listing, Player

#: For each script: the separator between given and family name, and both lists of names. None as the separator means
#: that the family name comes first, without a separator.
NAMES: Sequence[tuple[str | None, str, str]] = [
    (".", "Ann Bella Jeremy Jenna Oscar Ruth", "Smith Archer Jenkins Miller Shepherd Wood"),
    (".", "Élodie Jérôme Zoë Noël Inès Gaëtan", "Moreau Lefèvre Béranger Garçon Dubœuf Jégou"),
    (".", "Åsa Jørgen Øyvind Þóra Søren Ása", "Ødegård Sjöberg Ævarsson Jónsdóttir Åkesson Bjørk"),
    (".", "Łukasz Żaneta Jędrzej Čeněk Şirin İlkay", "Wójcik Źrebiec Jeřábek Šimůnek Yıldız Güneş"),
    (".", "Дмитрий Екатерина Юрий Людмила Олексій Їжа", "Соколов Журавлёва Щукин Йовчева Коваль Цой"),
    (".", "Αλέξης Ελένη Γιώργος Ιωάννα Ζωή Ωρίων", "Παπαδάκη Ψαράς Ξένος Θεοδώρου Ιωάννου Χάρης"),
    (".", "יעל דוד רות נועם אורי תמר", "כהן לוי פרץ שקד אלון גולן"),
    (".", "محمد فاطمة يوسف ليلى عمر زينب", "حداد نجار خياط بحري سليم قاسم"),
    (".", "अर्जुन प्रिया किरण मीरा विजय उषा", "शर्मा गुप्ता जोशी नायर सिंह पटेल"),
    (".", "สมชาย มาลี ก้อง นภา ชัย ดาว", "ใจดี ทองคำ แก้ว ศรีสุข บุญมา วงศ์"),
    (None, "小龙 美玲 建国 雨晴 子涵 文", "李 王 张 陈 欧阳 司马"),
    (None, "さくら ひろし 健太 あおい 蓮 ゆい", "佐藤 鈴木 高橋 田中 渡辺 山本"),
    (None, "민준 서연 지호 하은 도윤 예진", "김 이 박 최 정 강"),
]
#: For each kind of thing: adjectives and nouns.
_THINGS = {
    "weapon": ("Dagger, Longbow, Sabre", "Ashen, Bright, Crooked, Épée-like, Whispering"),
    "armour": ("Buckler, Cuirass, Gloves", "Dented, Élan-woven, Feathered, Sea-green, Über-sized"),
    "potion": ("Cordial, Elixir, Tincture", "Amber, Bitter, Jasmine, Smoky, Żubrówka-based"),
    "curio": ("Lantern, Music Box, Snow Globe", "Ancient, Borrowed, Curious, Jade, Lunar"),
}
#: Things with names in other scripts.
_FOREIGN: Sequence[tuple[str, str]] = [
    ("weapon", "Épée de Midi"),
    ("weapon", "Кинжал лунного света"),
    ("weapon", "青龙偃月刀"),
    ("armour", "Ægishjálmur"),
    ("armour", "Ασπίδα του Ήλιου"),
    ("armour", "鬼の面"),
    ("potion", "Żurek Courage"),
    ("potion", "ماء الورد"),
    ("potion", "सोमरस"),
    ("scroll", "מגילת הרוח"),
    ("scroll", "훈민정음 두루마리"),
    ("curio", "โคมลอย"),
    ("curio", "Bühnenlaterne"),
    ("curio", "Şans Nazarlığı 🧿"),
]


def names() -> Iterator[str]:
    """Return all names, in all scripts."""
    for between, given, family in NAMES:
        for first, last in product(given.split(), family.split()):
            yield User.normalize_username(f"{last}{first}" if between is None else f"{first}{between}{last}")


def settle() -> list[Player]:
    """Create the missing players, and return all of them in the order of names()."""
    wanted = list(names())
    known = set(User.objects.filter(username__in=wanted).values_list("username", flat=True))
    nobody = make_password(None)
    new = [User(username=name, password=nobody) for name in wanted if name not in known]
    Player.objects.bulk_create(
        Player(user=user, wants_sold_mail=False, wants_expired_mail=False)
        for user in User.objects.bulk_create(new)
    )
    settled = {each.user.username: each for each in Player.objects.select_related("user", "membership")}
    return [settled[name] for name in wanted if name in settled]


def goods() -> Iterator[tuple[str, str]]:
    """Return the kind and the name of each thing that they sell."""
    for kind, (things, which) in _THINGS.items():
        for adjective, thing in product(which.split(", "), things.split(", ")):
            yield kind, f"{adjective} {thing}"
    yield from _FOREIGN


def sell(players: Sequence[Player]) -> list[Listing]:
    """
    Offer the missing items, each by a different player, until they are sold.

    The listings date from yesterday, so that other listings are newer. Return the new listings.
    """
    wanted = list(goods())
    known = set(Item.objects.filter(name__in=[name for _, name in wanted]).values_list("name", flat=True))
    new = Item.objects.bulk_create(
        Item(kind=kind, name=name, owner=players[at * 7 % len(players)])
        for at, (kind, name) in enumerate(wanted)
        if name not in known
    )
    yesterday = timezone.now() - timedelta(days=1)
    return Listing.objects.bulk_create(
        Listing(item=item, seller=item.owner, price=20 + 15 * (at % 40), opens_at=yesterday)
        for at, item in enumerate(new)
    )
