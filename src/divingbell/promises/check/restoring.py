"""Tokens that a model writes: what they become, where, and what they never become."""

from divingbell.promises.check.exits import Ear, connected
from divingbell.promises.check.privacy_rig import (
    LOOK_ALIKE,
    SEALED,
    WHO,
    PrivacyRig,
    privacy_checks,
)
from divingbell.promises.check.rig import expect
from divingbell.promises.check.tool_rig import NAME

# `session.get` gives a variable as code has it, past the border.

_BROKEN = "BROKEN"
"""What is printed where a value has become code."""
_QUOTED = (
    "print('{token}')", 'print("{token}")', "print('''{token}''')", "print(f'{{1}}{token}')",
    "print(b'{token}'.decode())", "print({{'{token}': 1}})", "%time print('{token}')",
    "%%time\nprint('{token}')", "print('{token}'\n)", "eval('len(x)', {{'x': '{token}'}})",
)  # fmt: skip
_IN_SHELL = (
    "!echo {token}", "x = !echo {token}\nprint(x)", "%%bash\necho {token}", "%sx echo {token}",
    "get_ipython().system('echo {token}')",
    "get_ipython().run_cell_magic('bash', '', 'echo {token}')",
)  # fmt: skip


@privacy_checks("I12")
async def look_alikes(rig: PrivacyRig) -> str:
    said = "said = 'see [PHONE_' + '739105]'\n"
    ways = {
        "a result": f"{WHO}\nprint(who['notes'])",
        "a file": "print(open('note.txt').read())",
        "code": f"{said}print(said)",
        "a value": f"{said}[said]",
        "an error": f"{said}raise ValueError(said)",
    }
    async with rig.session() as session:
        await session.files.put("note.txt", f"{LOOK_ALIKE} [PHONE_739105]")
        for name, code in ways.items():
            shown = await rig.shown(session, code)
            for look_alike in (LOOK_ALIKE, "[PHONE_739105]"):
                expect(look_alike not in shown, f"{name}: {look_alike} is shown")
            expect("_482715)" in shown or "_739105)" in shown, f"{name}: too little: {shown[:200]}")
        who = await session.get("who")
        expect(LOOK_ALIKE not in who["notes"], "code gets it as it came")
    async with connected(rig, Ear()) as client:
        answer = str(await client.call_tool("people", {}))
    expect(LOOK_ALIKE not in answer, "a client gets it as it came")
    return f"changed in {len(ways)} places and in direct calls: it names nothing"


@privacy_checks("I13")
async def tokens_of_others(rig: PrivacyRig) -> str:
    async with (
        rig.session(user="ann") as mine,
        rig.session(user="ann") as next_one,
        rig.session(user="ben") as another,
    ):
        token = await rig.token(mine, "email")
        for session in (next_one, another):
            guessed = f"[EMAIL_{int(token[7:-1]) + 1}]" if session is another else LOOK_ALIKE
            for wrong in (token, guessed):
                await rig.refused_code(session, f"x = {wrong!r}")
                half = len(wrong) // 2
                joined = f"{wrong[:half]!r} + {wrong[half:]!r}"
                before = await rig.counted(session, "send")
                result = await session.run(f"servers.{NAME}.send({joined}, 'x')")
                told = "" if result.error is None else result.error.message
                expect("not known in this conversation" in told, f"{wrong}: {told or 'sent'}")
                expect(await rig.counted(session, "send") == before, "the server was called")
    return "refused in code and in arguments, before the server is called"


@privacy_checks("I14")
async def values_that_are_code(rig: PrivacyRig) -> str:
    async with rig.session() as session:
        street = await rig.token(session, "street")
        lane = await rig.token(session, "address_line_2")
        for code in _QUOTED:
            result = await session.run(code.format(token=street))
            expect(result.status == "ok", f"{code}: {result.error}")
            expect(_BROKEN not in result.text, f"{code} has run the value: {result.text}")
        expect(await rig.value(session, f"who['street'] == {street!r}"), "it is not the value")
        for code in _IN_SHELL:
            result = await session.run(code.format(token=lane))
            expect(_BROKEN not in result.text, f"{code} has run the value: {result.text}")
        done = await session.command(f"echo {lane}")
        expect(done.stdout.strip() == lane, f"in the text of a command: {done.stdout}")
        done = await session.command(["echo", lane])
        expect(done.stdout.strip() == lane, f"as a word of a command: {done.stdout}")
        counted = await session.command(["sh", "-c", 'printf %s "$1" | wc -c', "sh", lane])
        length = str(len(rig.person.row["address_line_2"]))
        expect(counted.stdout.strip() == length, "a word of a command is not the value")
    return f"{len(_QUOTED)} cells and {len(_IN_SHELL)} shells; a word of a command is one word"


@privacy_checks("I15")
async def secrets_for_others(rig: PrivacyRig) -> str:
    async with rig.session() as session:
        token = await rig.token(session, "key")
        expect(await rig.value(session, f"{token!r} != who['key']"), "code gets the secret")
        await rig.value(session, f"back = servers.{NAME}.echo({token!r})")
        expect(await session.get("back") == rig.person.row["key"], "its server does not get it")
        other = await session.run(f"servers.{SEALED}.echo({token!r})")
        told = "" if other.error is None else other.error.message
        expect("is sent nowhere else" in told, f"another server got it: {told or other.value}")
        rig.hidden_in(told)
        done = await session.command(["echo", token])
        expect(done.stdout.strip() == token, "a command gets the secret")
        length = await session.command("wc -c", input=token)
        expect(length.stdout.strip() == str(len(token)), "a command gets the secret")
    return "its own server gets it; another one, code and commands do not"


@privacy_checks("I16")
async def values_that_come_back(rig: PrivacyRig) -> str:
    async with rig.session() as session:
        token = await rig.token(session, "email")
        for code in (f"servers.{NAME}.echo({token!r})", f"servers.{NAME}.echo(who['email'])"):
            expect(await rig.value(session, f"got = {code}\ngot") == token, "another token")
            expect(await session.get("got") == rig.person.email, "the server got the token")
        rig.hidden_in(await rig.shown(session, f"servers.{NAME}.fail({token!r})"))
        result = await session.run(f"servers.{NAME}.echo({token!r})")
        expect(token in result.calls[0].arguments, f"listed: {result.calls[0].arguments}")
    async with connected(rig, Ear()) as client:
        people = str(await client.call_tool("people", {}))
        token = people[people.index("[EMAIL_") :].partition("]")[0] + "]"
        again = str(await client.call_tool("echo", {"text": token}))
    expect(token in again, f"a client gets {again}")
    rig.hidden_in(again)
    return "the server gets the value, and what it says of it is the same token"


@privacy_checks("I17")
async def rules_about_values(rig: PrivacyRig) -> str:
    async with rig.session(user="ann") as session:
        token = await rig.token(session, "email")
        before = await rig.counted(session, "send"), await rig.counted(session, "lenient")
        for to in (repr(token), "who['email']", f"'{token[:5]}' + '{token[5:]}'"):
            result = await session.run(f"servers.{NAME}.send({to}, 'x')")
            code = "" if result.error is None else result.error.message
            expect("not to them" in code, f"the rule did not see the value: {code or 'sent'}")
        owner = await rig.token(session, "nickname")
        name = f"'{owner[:4]}' + '{owner[4:]}'"
        result = await session.run(f"call_mcp_tool('{NAME}.lenient', {{{name}: 'ben'}})")
        expect(result.error is not None, "a bound argument was set by a token")
        after = await rig.counted(session, "send"), await rig.counted(session, "lenient")
        expect(before == after, "the server was called")
        # Longer than thirty characters, as its schema wants, is the value and not the token.
        await rig.value(session, f"got = str(servers.{NAME}.post({token!r}))")
        expect(rig.person.email in await session.get("got"), "the server got something else")
    return "rules, bound arguments and schemas see what is really sent"


@privacy_checks("I18")
async def questions_about_values(rig: PrivacyRig) -> str:
    async with rig.session() as session:
        token = await rig.token(session, "email")
        asked = len(rig.asked)
        shown = await rig.shown(session, f"servers.{NAME}.shown(a0='[EM' + {token[3:]!r})")
        [approval] = rig.asked[asked:]
        expect(approval.values["a0"] == rig.person.email, f"asked about {approval.values}")
        expect(rig.person.email in str(approval.arguments), f"shown: {approval.arguments}")
        rig.hidden_in(shown)
    return "the person sees the value, and the model does not"
