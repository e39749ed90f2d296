"""Words that speak of telephone numbers, in the languages of the world.

They are beginnings of what programs call these things: names and keywords of ☎, 📱 and 📠 in
Unicode's CLDR (annotations, version 45), and the labels of GNOME Contacts (43) and GNOME Calls (44)
in their translations. Small letters: how they are written does not matter.
"""

LATIN = (
    r"phone|t(?:é|e)l(?:é|è|e)(?:f|ph)(?:o|ó|ò)|telepon|telpon|teileaf|tālr|puhelin|kännyk|símanúm"
    r"|\bsími\b|farsími|\bsimu\b|selfoon|\bfóònù|\bekwent|guthán|ffôn|\bfón\b|\bfòn\b|điện thoại"
    r"|mobile|mobiel|mobiil|mobil\b|mobiln|mobilus|mobilais|mobilt|mobilsz|mobitel|\bmob[.:]"
    r"|m(?:ó|ò)(?:v|b)(?:i|e)l|\bmovil|cellular\b|cellulare|\bcelul|seluler|\bponsel|komórk"
    r"|mugikor|symudol|telemóvel|\bbimbit|di động|\bcep\b|\bfax|\bfaks|smartfon"
)
OTHER_SCRIPTS = (
    # Cyrillic, Greek, Georgian and Armenian
    r"телефон|тэлефон|мобил|мабіль|мобіль|мобайл|сотов|клетъч|стільник|ұялы|уюлдук|утас|факс"
    r"|τηλέφων|τηλεφών|τηλεφων|κινητ|φαξ|ტელეფ|მობილ|ფაქს|հեռախոս|բջջային",
    # of the Near East and of Ethiopia
    r"טלפון|נייד|פקס|هاتف|جوال|المحمول|تلفن|موبا|فون|گوشی|همراه|فاكس|فکس|ስልክ|ቴሌፎን",
    # of India
    r"फ़ोन|फ़ोन|फोन|मोबा|दूरभाष|ফোন|মোবা|মবা|ફોન|મોબા|ਫੋਨ|ਫ਼ੋਨ|ਮੋਬਾ|ଫୋନ|ମୋବା|ஃபோன்|போன்"
    r"|தொலைபேசி|மொபை|அலைபேசி|ఫోన్|మొబై|ಫೋನ್|ದೂರವಾಣಿ|ಮೊಬೈ|ഫോൺ|ഫോണ്|മൊബൈ|දුරකථන|ෆෝන්",
    # of East and Southeast Asia
    r"โทร|มือถือ|ໂທລະສັບ|ມືຖື|ទូរស|ဖုန်း"
    r"|电话|電話|手机|手機|手提|座机|固话|传真|傳真|携帯|スマホ|전화|휴대|모바일|팩스",
)
"""A telephone, a mobile one, and a fax; apart, because an expression may be too large."""
VERBS = (
    r"\banruf|rückruf|\bllama[rdn]|\bappel|\brappel|\bchiama|\brichiam|\bchama[rdn]|\bringer|bellen\b"
    r"|dzwon|dzwoń|\bvolat|\bvolať|\bzavola|hívás|\bsună|\bapele|soita|puhelu|pokliči|\bpoziv|\bpozov"
    r"|trucada|panggil|\bkontakt|\bcontact(?:o\b|ez\b|er\b|ar\b)|\bcontato|\bcontatt|kapcsolat|yhteystied"
    r"|\bbereik|raggiung|tavoitt|\bnås\b|\bnå (?:mig|oss|meg)|hubungi|liên hệ|iletişim|\bulaş"
    r"|\barayı|\barayab"
    r"|επικοινων|связат|свяжит|зв['’]яж|контакт|اتصل|للتواصل|التواصل|联系|聯絡|連絡|연락|ติดต่อ|संपर्क|যোগাযোগ"
    r"|звон|дзвін|викл|вызов|позив|позов|κλήση|תקשר|تماس|زنگ|დარეკ|զանգ|拨打|撥打|ダイヤル"
)
"""To call somebody, and to be in contact."""
