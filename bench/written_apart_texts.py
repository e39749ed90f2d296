"""Templates about telephone numbers, by somebody who had not seen what finds them: written,
and committed, before they were run."""

# ---------------------------------------------------------------- texts with numbers

MAILS = (
    # 1
    (
        "Hi {name},\n\nthanks for getting back to me so quickly. I'm travelling on Thursday, "
        "but you can reach me on {phone} if anything comes up with the {company} renewal.\n\n"
        "Best,\n{name}"
    ),
    # 2
    (
        "From: {name} <{email}>\nTo: {email}\nDate: {date} {time}\n"
        "Subject: Re: Re: Quote Q-{int5}\n\n"
        "{words} The revised total is {amount} EUR. Call my mobile if in doubt: {phone}\n\n"
        "> On {date}, {name} wrote:\n> {words}"
    ),
    # 3
    (
        "Subject: Automatic reply: Invoice {int6}\n\nI am out of the office until {date} with "
        "limited access to email. For urgent matters please contact {name} ({email}, {phone})."
    ),
    # 4
    (
        "Hello {name},\n\nYour order {order} has shipped!\n\nDelivery address:\n{name}\n"
        "{street}\n{city}\n{phone}\n\nTotal paid: {amount}\n\nQuestions? Just reply to this "
        "email."
    ),
    # 5
    (
        "Dear {name},\n\nWe would like to invite you to a second interview on {date} at {time}."
        " Please dial in at {phone}, conference PIN {int6}#.\n\nKind regards,\n"
        "Talent Acquisition, {company}"
    ),
    # 6
    (
        "---------- Forwarded message ---------\nFrom: {name} <{email}>\nDate: {date}\n"
        "Subject: site visit\n\n{words} The caretaker is called {name}, {phone}, he has the "
        "keys to unit {two}. Parking is at the back."
    ),
    # 7
    (
        "Sehr geehrte Damen und Herren,\n\nleider ist die Lieferung zu Auftrag {int7} vom "
        "{date} bisher nicht eingetroffen. Bitte rufen Sie mich unter {phone} zurück, "
        "vormittags bin ich am besten zu erreichen.\n\nMit freundlichen Grüßen\n{name}"
    ),
    # 8
    (
        "Bonjour {name},\n\nSuite à notre échange de ce matin, veuillez trouver ci-joint le "
        "devis n° {int5} d'un montant de {amount} € HT. Je reste joignable au {phone} pour "
        "toute question.\n\nBien cordialement,\n{name}\n{company}"
    ),
    # 9
    (
        "Hola, {name}:\n\nTe confirmo la reunión del {date} a las {time} en {street}, {city}. "
        "Si llegas tarde mándame un WhatsApp al {phone}.\n\nUn saludo,\n{name}"
    ),
    # 10
    (
        "Beste {name},\n\nHelaas hebben we u vandaag niet kunnen bereiken op {phone}. Klopt dit"
        " nummer nog? U kunt uw gegevens wijzigen in Mijn {company}, klantnummer {int8}.\n\n"
        "Met vriendelijke groet,\nTeam Klantenservice"
    ),
)

SIGNATURES = (
    # 1
    (
        "{name}\nSenior Account Manager | {company}\n{street}, {city}\n"
        "T {phone} | M {phone} | {email}"
    ),
    # 2
    "Cheers,\n{name}\n\n--\n{name}\nVP Engineering, {company}\n{phone}\n{email}",
    # 3
    (
        "Kind regards\n\n{name}\nOffice: {phone}\nCell: {phone}\nFax: {phone}\n\nThis message "
        "may contain confidential information. If you are not the intended recipient, delete "
        "it."
    ),
    # 4
    (
        "Thanks!\n\n{name} (she/her)\nCustomer Success @ {company}\np: {phone}  e: {email}\n"
        "Book time with me: https://cal.example.com/{int4}"
    ),
    # 5
    "Sent from my iPhone\n\n{name}\n{company} Logistics LLC\nMC# {int6} / DOT# {int7}\n{phone}",
    # 6
    (
        "{name} · Partner · {company} LLP\n{street} · {city}\nDirect {phone} · "
        "Switchboard {phone}\nRegistered in England and Wales no. {int8}"
    ),
    # 7
    (
        "Mit freundlichen Grüßen\ni. A. {name}\n\n{company} GmbH & Co. KG\n{street}\n{city}\n"
        "Tel.: {phone}\nFax: {phone}\nAmtsgericht München, HRB {int6}\nUSt-IdNr. DE{int9}"
    ),
    # 8
    (
        "Cordialement,\n{name}\nResponsable des ventes\n{company} SAS au capital de 40 000 €\n"
        "Tél. {phone} - Port. {phone}\nSIRET {int9}000{two}"
    ),
    # 9
    (
        "Cordiali saluti,\n{name}\nUfficio acquisti\n{company} S.r.l.\n{street} - {city}\n"
        "Cell. {phone}\nP.IVA {int9}{two}"
    ),
    # 10
    (
        "Pozdrawiam serdecznie\n{name}\nSpecjalista ds. obsługi klienta\n{company} Sp. z o.o.\n"
        "kom. {phone}\nNIP: {int8}{two}, REGON: {int9}"
    ),
)

CHATS = (
    # 1
    "[{time}] {name}: new phone who dis\n[{time}] {name}: lol its me, save it: {phone}",
    # 2
    (
        "*{name}*  {time}\n<@U0{int7}> can you ring the customer back? {phone} - he's quite "
        "upset about order {order}"
    ),
    # 3
    "{phone}",
    # 4
    (
        "Visitor: is there a number I can call?\nAgent ({name}): Of course, it's {phone}, "
        "Monday to Friday 9-17.\nVisitor: thx"
    ),
    # 5
    (
        "[{date}, {time}] {phone}: Hi, is the flat in {city} still available?\n"
        "[{date}, {time}] {name}: Yes it is, {amount} per month plus bills"
    ),
    # 6
    (
        "{name}: driver's stuck at gate {small}\n{name}: text him, {phone}\n"
        "{name}: done, he'll be in at {time}"
    ),
    # 7
    "{name}: kannst du mal kurz bei {phone} durchklingeln? geht um das Ticket #{int5}, eilt",
    # 8
    "{name} ({time}): ti lascio il mio numero nuovo {phone}, quello vecchio non funziona più",
    # 9
    (
        "Cliente: Quero cancelar o pedido {int7}\nAtendente: Claro, me confirma seu telefone "
        "com DDD, por favor?\nCliente: {phone}\nAtendente: Obrigado, {name}, um momento."
    ),
    # 10
    (
        "{name}: hej, vem har jouren i helgen?\n{name}: jag, sms:a mig på {phone} om larmet "
        "går efter {time}"
    ),
)

TICKETS = (
    # 1
    (
        "Ticket #{int6} [OPEN] Priority: High\nRequester: {name} <{email}>\nPhone: {phone}\n"
        "Created: {date} {time}\n\nThe label printer in warehouse {small} does not come "
        "online. {words}"
    ),
    # 2
    (
        "INC0{int6} | Assigned to: Service Desk L2\nShort description: VPN drops every "
        "{two} minutes\nCaller: {name}\nContact: {phone} / {email}\nHostname: LT-{int5} "
        "({private})"
    ),
    # 3
    (
        "## Description\n{words}\n\n## Steps to reproduce\n1. Open the contact form\n"
        "2. Enter `{phone}` into the field *Mobile*\n3. Press Save\n\n## Expected\nThe contact "
        "is saved.\n\n## Actual\nHTTP 422, request id {uuid}"
    ),
    # 4
    (
        "Internal note by {name} on {date}: customer asked not to be contacted by email, use "
        "{phone} instead. Refund of {amount} approved, see case {int8}."
    ),
    # 5
    (
        "SUP-{int4}: Merge duplicate contacts\n\nPlease merge contact {int5} ({name}, {phone}) "
        "into contact {int5} ({name}, {phone}). Keep the older one."
    ),
    # 6
    (
        "Request type: Replacement SIM\nUser: {name}\nEmployee no.: {int6}\nLine: {phone}\n"
        "IMEI: 35{int6}{int7}\nCost centre: {int4}\nReason: {words}"
    ),
    # 7
    (
        'Case {int8} has been updated.\n\n{name} commented:\n"I tried the steps but the '
        "router still blinks red. Technician can ring {phone} before arrival, my buzzer does "
        'not work."\n\nStatus: Pending -> In progress'
    ),
    # 8
    (
        "Störungsmeldung Nr. {int7}\nGemeldet von: {name}, {company}\nRückrufnummer: {phone}\n"
        "Standort: {street}, {city}\nAufzug {small} steht seit {time} Uhr. {words}"
    ),
    # 9
    (
        "Incidencia {int6} - Estado: Abierta\nCliente: {name}\nTeléfono de contacto: {phone}\n"
        "Descripción: el datáfono no imprime el recibo desde el {date}."
    ),
    # 10
    (
        "Zgłoszenie nr {int5}/2024\nZgłaszający: {name}, tel. {phone}\nTreść: paczka {int9} "
        "uszkodzona, proszę o kontakt w sprawie reklamacji."
    ),
)

CALL_NOTES = (
    # 1
    (
        "Called {name} at {phone}, left voicemail. Second attempt planned for {date}. Interested"
        " in the 50-seat plan, budget about {amount}."
    ),
    # 2
    (
        "CALL SUMMARY\nDirection: inbound\nFrom: {phone}\nTo: {phone}\nDuration: 00:{two}:{two}\n"
        "Agent: {name}\nOutcome: callback requested\nNotes: {words}"
    ),
    # 3
    "spoke w/ {name} re: PO {int6} - wants delivery moved to {date}. alt contact wife {phone}",
    # 4
    (
        "Discovery call {company}, {date}\n- 3 decision makers, main one is {name}\n- current "
        "contract ends in Q{small}\n- {amount} per seat is too much\n- prefers cell: {phone}\n"
        "- next step: send deck"
    ),
    # 5
    (
        "Transcript\n[00:01:{two}] Agent: And what is the best number for you?\n"
        "[00:01:{two}] Caller: Sure, that's {phone}.\n[00:01:{two}] Agent: Let me read that "
        "back to you."
    ),
    # 6
    (
        "Missed call from {phone} at {time}. No message was left. 2 earlier calls from this "
        "caller in the last 30 days."
    ),
    # 7
    (
        "Telefonnotiz {date} {time}\nAnrufer: Hr. {name}, Fa. {company}\nNr.: {phone}\n"
        "[x] bittet um Rückruf  [ ] ruft wieder an\nBetreff: Reklamation Charge {int6}"
    ),
    # 8
    (
        "Appel du {date} : Mme {name} ne retrouve pas sa facture n° {int7} ({amount} €). "
        "Rappeler après 14 h au {phone} ou sur le fixe {phone}."
    ),
    # 9
    (
        "Gebeld met {name} ({company}) - {phone}. Offerte {int5} is akkoord, monteur komt op "
        "{date} tussen 8 en 12 uur."
    ),
    # 10
    (
        "Puhelumuistio {date}: {name} / {company} soitti, pyytää soittamaan takaisin numeroon "
        "{phone}. Tilaus {int6}, toimitus myöhässä."
    ),
)

RECORDS = (
    # 1
    (
        '{{"id": {int6}, "name": "{name}", "email": "{email}", "phone": "{phone}", '
        '"created_at": "{date}T{time}Z", "lifetime_value": {amount}}}'
    ),
    # 2
    (
        '[\n  {{"contact_id": "{uuid}", "first_seen": {epoch}, "mobile": "{phone}"}},\n'
        '  {{"contact_id": "{uuid}", "first_seen": {epoch}, "mobile": "{phone}"}},\n'
        '  {{"contact_id": "{uuid}", "first_seen": {epoch}, "mobile": null}}\n]'
    ),
    # 3
    (
        '{{"object": "charge", "amount": {int5}, "currency": "usd", "created": {epoch}, '
        '"billing_details": {{"address": {{"city": "{city}", "line1": "{street}", '
        '"postal_code": "{int5}"}}, "email": "{email}", "name": "{name}", '
        '"phone": "{phone}"}}, "paid": true}}'
    ),
    # 4
    (
        '{{"results": [{{"id": "{int9}", "properties": {{"createdate": "{date}", '
        '"firstname": "{name}", "hs_object_id": "{int9}", "hs_lead_status": "NEW", '
        '"mobilephone": "{phone}"}}, "archived": false}}], "paging": {{"next": '
        '{{"after": "{int5}"}}}}}}'
    ),
    # 5
    (
        '{{\n  "sid": "SM{hex}",\n  "from": "{phone}",\n  "to": "{phone}",\n'
        '  "body": "Your code is {int6}",\n  "status": "delivered",\n'
        '  "price": "-0.00750",\n  "num_segments": "1",\n  "error_code": null\n}}'
    ),
    # 6
    (
        '{{"shipment": {{"tracking": "1Z{int6}{int9}", "weight_g": {int4}, "to": '
        '["{name}", "{company}", "{street}", "{city}", "{phone}"], "eta": "{date}"}}}}'
    ),
    # 7
    (
        '{{"type": "message", "ticket_id": {int7}, "author": "{name}", "text": "Hi team,\\n'
        '\\nplease cancel my order {order} and call me back at {phone}.\\n\\n{name}", '
        '"via": {{"channel": "email"}}, "ip": "{ip}"}}'
    ),
    # 8
    (
        '{{"Kundennummer": "{int8}", "Nachname": "{name}", "Straße": "{street}", "Ort": '
        '"{city}", "Telefon": "{phone}", "Mobil": "", "Kreditlimit": {amount}}}'
    ),
    # 9
    (
        '{{"codigo": {int5}, "razao_social": "{company} Ltda", "celular": "{phone}", '
        '"contato": "{name}", "cep": "{int5}-{int3}", "ativo": true}}'
    ),
    # 10
    (
        '{{"klant": {{"naam": "{name}", "plaats": "{city}", "telefoonnummer": "{phone}"}}, '
        '"bestelling": "{int8}", "totaal": {amount}, "status": "verzonden"}}'
    ),
)

REPRS = (
    # 1
    (
        "{{'customer_id': {int6}, 'full_name': '{name}', 'tel': '{phone}', 'vip': False, "
        "'last_order': datetime.datetime(2024, 3, {two}, 9, {two})}}"
    ),
    # 2
    "Contact(id={int4}, name='{name}', email='{email}', phone='{phone}', owner_id={int3})",
    # 3
    "[('{name}', '{phone}'), ('{name}', '{phone}'), ('{name}', '{phone}')]",
    # 4
    (
        ">>> crm.get_contact({int5})\n<Contact {int5}: {name}, {company}>\n"
        ">>> _.numbers\n['{phone}', '{phone}']"
    ),
    # 5
    (
        "OrderedDict([('Id', '003{int9}AAQ'), ('LastName', '{name}'), ('Phone', '{phone}'), "
        "('MobilePhone', None), ('AccountId', '001{int9}AAM')])"
    ),
    # 6
    (
        "{{'{name}': {{'dept': 'Sales', 'ext': {int4}, 'desk': '{phone}', 'hired': '{date}'}}, "
        "'{name}': {{'dept': 'Legal', 'ext': {int4}, 'desk': '{phone}', 'hired': '{date}'}}}}"
    ),
    # 7
    "User {int5} found\nName  : {name}\nE-mail: {email}\nMobile: {phone}\nLogins: {int3}",
    # 8
    (
        "Row(employee_id={int5}, name='{name}', salary=Decimal('{amount}'), "
        "emergency_contact='{name} {phone}', start=datetime.date(2019, 11, {small}))"
    ),
    # 9
    (
        "{{'nom': '{name}', 'ville': '{city}', 'code_postal': '{int5}', 'telephone': '{phone}',"
        " 'date_inscription': '{date}', 'solde': {amount}}}"
    ),
    # 10
    "Mitarbeiter(personalnr={int5}, name='{name}', handy='{phone}', urlaubstage={two})",
)

TABLES = (
    # 1
    (
        "id,first_name,last_name,email,phone,zip\n"
        "{int4},Anna,Lee,{email},{phone},{int5}\n"
        "{int4},Tom,Reyes,{email},{phone},{int5}\n"
        "{int4},Priya,Shah,{email},,{int5}"
    ),
    # 2
    (
        "     name            company           phone      amount\n"
        "0  {name}  {company}  {phone}  {amount}\n"
        "1  {name}  {company}  {phone}  {amount}\n"
        "2  {name}  {company}  {phone}  {amount}"
    ),
    # 3
    (
        "| Name | Role | Contact | Start |\n|---|---|---|---|\n"
        "| {name} | Driver | {phone} | {date} |\n"
        "| {name} | Dispatcher | {phone} | {date} |"
    ),
    # 4
    (
        "order_id\tsku\tqty\trecipient\trecipient_phone\ttotal\n"
        "{int8}\t{ean}\t{small}\t{name}\t{phone}\t{amount}\n"
        "{int8}\t{ean}\t{small}\t{name}\t{phone}\t{amount}"
    ),
    # 5
    (
        " id   |   caller   |   callee   | seconds | started\n"
        "------+------------+------------+---------+---------------------\n"
        " {int4} | {phone} | {phone} | {int3} | {date} {time}\n"
        " {int4} | {phone} | {phone} | {int3} | {date} {time}\n(2 rows)"
    ),
    # 6
    (
        "         customer_id              email        mobile  orders\n"
        "17            {int6}  {email}  {phone}       {small}\n"
        "212           {int6}  {email}           NaN       {small}\n"
        "340           {int6}  {email}  {phone}      {two}\n\n[3 rows x 4 columns]"
    ),
    # 7
    (
        "Kundennr;Firma;Ansprechpartner;Telefon;Umsatz\n"
        "{int5};{company};{name};{phone};{amount}\n"
        "{int5};{company};{name};{phone};{amount}"
    ),
    # 8
    (
        "| Nombre | Ciudad | Móvil | Última compra |\n|:--|:--|:--|--:|\n"
        "| {name} | {city} | {phone} | {amount} € |\n"
        "| {name} | {city} | {phone} | {amount} € |"
    ),
    # 9
    (
        "Lp.;Imię i nazwisko;Miasto;Nr telefonu;Data zatrudnienia\n"
        "1;{name};{city};{phone};{date}\n2;{name};{city};{phone};{date}\n"
        "3;{name};{city};{phone};{date}"
    ),
    # 10
    (
        '"Nome","Cognome","Recapito","CAP","Importo"\n'
        '"Giulia","Ferri","{phone}","{int5}","{amount}"\n'
        '"Marco","Conti","{phone}","{int5}","{amount}"'
    ),
)

MARKUP = (
    # 1
    '<p>Call us: <a href="tel:{phone}">{phone}</a> or write to {email}</p>',
    # 2
    (
        "BEGIN:VCARD\nVERSION:3.0\nN:Moore;Ellen;;;\nFN:Ellen Moore\nORG:{company}\n"
        "TEL;TYPE=WORK,VOICE:{phone}\nTEL;TYPE=CELL:{phone}\nEMAIL:{email}\n"
        "REV:20240112T101500Z\nEND:VCARD"
    ),
    # 3
    (
        '<tr><td>{int5}</td><td>{name}</td><td class="num">{phone}</td>'
        "<td>{amount}</td><td>{date}</td></tr>"
    ),
    # 4
    (
        '<script type="application/ld+json">{{"@context": "https://schema.org", "@type": '
        '"LocalBusiness", "name": "{company}", "telephone": "{phone}", "priceRange": "$$", '
        '"geo": {{"latitude": 52.{int5}, "longitude": 13.{int5}}}}}</script>'
    ),
    # 5
    (
        "BEGIN:VEVENT\nUID:{uuid}@cal.example.com\nDTSTART:20240611T090000Z\n"
        "SUMMARY:Kick-off {company}\nLOCATION:{street}\\, {city}\n"
        "DESCRIPTION:Join by phone {phone}\\nMeeting ID: {int3} {int4} {int4}\\n"
        "Passcode: {int6}\nEND:VEVENT"
    ),
    # 6
    (
        '<?xml version="1.0" encoding="UTF-8"?>\n<Order no="{int8}">\n  <ShipTo>\n'
        "    <Name>{name}</Name>\n    <Street>{street}</Street>\n    <City>{city}</City>\n"
        "    <Phone>{phone}</Phone>\n  </ShipTo>\n  <Total>{amount}</Total>\n</Order>"
    ),
    # 7
    (
        '<div style="font-size:12px;color:#336699"><b>{name}</b><br>{company}<br>'
        "{phone}&nbsp;|&nbsp;{email}<br>&copy; 2012-2024</div>"
    ),
    # 8
    (
        "<footer><p>{company} AG &bull; {street} &bull; {city}</p>\n<p>Hotline: {phone} "
        "(Mo&ndash;Fr 8&ndash;18 Uhr)</p><p>HRB {int5}</p></footer>"
    ),
    # 9
    (
        '<li itemprop="member"><span>{name}</span>, infirmière, <span>{street}</span>, '
        '<span>{city}</span> - <span itemprop="telephone">{phone}</span></li>'
    ),
    # 10
    (
        "BEGIN:VCARD\nVERSION:4.0\nFN:{name}\nTITLE:Verkoopleider\nORG:{company} B.V.\n"
        "TEL;VALUE=uri;TYPE=cell:tel:{phone}\nNOTE:KvK {int8}\nEND:VCARD"
    ),
)

CODE = (
    # 1
    (
        "INSERT INTO contacts (id, name, phone, created_at) VALUES\n"
        "  ({int5}, '{name}', '{phone}', '{date} {time}'),\n"
        "  ({int5}, '{name}', '{phone}', '{date} {time}');"
    ),
    # 2
    "client.messages.create(to='{phone}', from_='{phone}', body='Parcel {order} is on its way')",
    # 3
    "UPDATE employees SET mobile = '{phone}', updated = {epoch} WHERE employee_no = {int6};",
    # 4
    (
        'on_call:\n  - name: {name}\n    pager: "{phone}"\n    escalate_after: {int3}\n'
        '  - name: {name}\n    pager: "{phone}"\n    escalate_after: {int3}\n'
        "timezone: Europe/London"
    ),
    # 5
    (
        "def test_normalise():\n    assert normalise('{phone}') is not None\n"
        "    assert normalise('12') is None\n    assert MAX_LENGTH == 15"
    ),
    # 6
    (
        "curl -X POST https://api.example.com/v2/leads -H 'Content-Type: application/json' "
        '-d \'{{"name": "{name}", "phone": "{phone}", "source_id": {int4}}}\''
    ),
    # 7
    (
        'create_contact(\n    name="{name}",\n    email="{email}",\n    number="{phone}",'
        '\n    tags=["lead", "fair-2024"],\n)\n# -> {{"ok": True, "id": {int6}}}'
    ),
    # 8
    (
        "SMTP_HOST={private}\nSMTP_PORT=587\nSUPPORT_EMAIL={email}\nSUPPORT_PHONE={phone}\n"
        "SESSION_TTL=86400\nBUILD={sha}"
    ),
    # 9
    (
        "INSERT INTO clientes (dni, nombre, movil, cp) VALUES "
        "('{int8}{letter}', '{name}', '{phone}', '{int5}');"
    ),
    # 10
    (
        "kontakt:\n  namn: {name}\n  mobil: {phone}\n  adress: {street}, {city}\n"
        "  kundnr: {int6}\n  skapad: {date}"
    ),
)

LOGS = (
    # 1
    "{date} {time},{int3} INFO  [sms-gateway] sent message {uuid} to {phone} in {int3} ms",
    # 2
    "ValueError: could not parse '{phone}' as a phone number for contact {int5} ({name})",
    # 3
    (
        '[{date}T{time}Z] asterisk[{int5}]: -- Executing Dial("SIP/trunk-{int4}", '
        '"{phone},30") in new stack\n[{date}T{time}Z] asterisk[{int5}]: -- Hangup cause 16'
    ),
    # 4
    (
        '{{"level": "warn", "ts": {epoch}.{int3}, "msg": "duplicate contact", "pid": {int5}, '
        '"phone": "{phone}", "existing_id": {int6}, "new_id": {int6}}}'
    ),
    # 5
    (
        'Traceback (most recent call last):\n  File "/srv/app/import.py", line {int3}, in '
        'load\n    validate(row)\n  File "/srv/app/rules.py", line {two}, in validate\n'
        "    raise Invalid(row)\nInvalid: ['{int5}', '{name}', '{phone}', '{city}']"
    ),
    # 6
    (
        'ERROR:  duplicate key value violates unique constraint "users_phone_key"\n'
        "DETAIL:  Key (phone)=({phone}) already exists."
    ),
    # 7
    (
        '{ip} - - [{date}:{time} +0000] "GET /api/lookup?number={phone}&v=2 HTTP/1.1" 200 '
        '{int4} "-" "{agent}"'
    ),
    # 8
    (
        "{date} {time} import: row {int3}: ok {phone}\n{date} {time} import: row {int3}: ok "
        "{phone}\n{date} {time} import: row {int3}: skipped (empty)\n{int4} rows in {small}.{two}s"
    ),
    # 9
    'HTTP 400 Bad Request: {{"code": 21211, "message": "Invalid \'To\' number: {phone}"}}',
    # 10
    "{date} {time} FEHLER Fax an {phone} nicht zugestellt (besetzt), Versuch {small} von 5",
)

FORMS = (
    # 1
    (
        "New submission: Contact us\n\nYour name: {name}\nCompany: {company}\nWork email: "
        "{email}\nPhone number (optional): {phone}\nTeam size: 51-200\nMessage: {words}\n\n"
        "Submitted {date} {time} from {ip}"
    ),
    # 2
    (
        "© 2024 {company} Inc. All rights reserved.\n{street}, {city}\n{phone} | {email}\n"
        "Privacy · Terms · Cookie settings"
    ),
    # 3
    (
        "DELIVERY NOTE {int7}\nCarrier: {company}\nConsignee: {name}, {street}, {city}\n"
        "Notify party: {phone}\nPallets: {two}  Gross: {int4} kg\nVehicle: {plate}\n"
        "ETA: {date} {time}"
    ),
    # 4
    (
        "Reservation confirmed: table for {small}, {date} at {time}\nGuest: {name} - {phone}\n"
        "Notes: window seat, 1 high chair. Ref {order}"
    ),
    # 5
    (
        "EMERGENCY CONTACT FORM\nEmployee: {name} (ID {int5})\n1. {name} - spouse - {phone}\n"
        "2. {name} - parent - {phone}\nAllergies: none\nSigned: {date}"
    ),
    # 6
    (
        "Anmeldung Schulung {date}\nName: {name}\nFirma: {company}\nTel. (tagsüber): {phone}\n"
        "Rechnungsadresse: {street}, {city}\nTeilnahmegebühr: {amount} €\nIBAN: {iban}"
    ),
    # 7
    (
        "Formulaire de retour\nCommande : {int8}\nNom : {name}\nN° de téléphone : {phone}\n"
        "Motif : taille trop petite\nMontant à rembourser : {amount} €"
    ),
    # 8
    (
        "Modulo di contatto\nNome e cognome: {name}\nTelefono: {phone}\nCodice ordine: {order}\n"
        "Messaggio: il pacco risulta consegnato il {date} ma non ho ricevuto niente."
    ),
    # 9
    (
        "{company}, Lda. | {street} | {city}\nTel. {phone} (chamada para a rede fixa nacional)\n"
        "NIPC {int9} | Livro de Reclamações"
    ),
    # 10
    (
        "Følgeseddel {int6}\nModtager: {name}\n{street}\n{city}\nMobil {phone}\nKolli: {small}  "
        "Vægt: {two} kg\nSMS-advisering: ja"
    ),
)

WITH_NUMBERS = (
    MAILS
    + SIGNATURES
    + CHATS
    + TICKETS
    + CALL_NOTES
    + RECORDS
    + REPRS
    + TABLES
    + MARKUP
    + CODE
    + LOGS
    + FORMS
)

# ---------------------------------------------------------------- texts without

SHOP_LOOK_ALIKES = (
    # 1
    "Invoice {int8} dated {date}: net {amount}, VAT 19 %, due within 30 days. IBAN {iban}",
    # 2
    (
        "order_id,ean,qty,unit_price,total\n{int9},{ean},{two},{amount},{amount}\n"
        "{int9},{ean},{small},{amount},{amount}"
    ),
    # 3
    "Your parcel 00340{int6}{int9} is out for delivery. Track it with reference {order}.",
    # 4
    (
        "| SKU | Part no. | Stock | Reorder |\n|---|---|---|---|\n"
        "| {int6} | 7M0-{int3}-{int3}-A | {int4} | {int3} |\n"
        "| {int6} | 1K0 {int3} {int3} B | {int4} | {int3} |"
    ),
    # 5
    (
        "Paid with card {card}, expires {expiry}. Authorisation {int6}, terminal {int8}, "
        "receipt {int4}. Keep this slip for your records."
    ),
    # 6
    "Title: {words}\nISBN: {isbn}\nPages: {int3}\nPublished: 2017\nPrice: {amount}",
    # 7
    "Rechnungsnr. {int7}, Kundennr. {int6}, Artikel 4{int3}.{int3}.{two}: 12 Stück à {amount} €",
    # 8
    "Commande n° {int9} expédiée le {date}, colis {int6} {int5} {small}, total {amount} € TTC.",
    # 9
    "Faktura VAT {int3}/{two}/2024, NIP {int3}-{int3}-{two}-{two}, do zapłaty {amount} zł",
    # 10
    "Bestelnummer {int8}, EAN {ean}, aantal {two}, verzendkosten {amount}. Levering: {date}.",
)

MACHINE_LOOK_ALIKES = (
    # 1
    "{date} {time} sshd[{int5}]: Accepted publickey for deploy from {ip} port {int5} ssh2",
    # 2
    (
        "total 1{int4}\n-rw-r--r-- 1 root root {int9} Mar {two} 10:15 backup-20240311.tar.gz\n"
        "-rw-r--r-- 1 root root  {int8} Mar {two} 10:16 index.db"
    ),
    # 3
    "commit {sha}\nAuthor: {name} <{email}>\nDate:   {date}\n\n    Bump version to 3.{two}.{int3}",
    # 4
    '{{"trace_id": "{hex}", "span": {int9}, "ts": {epoch}, "duration_us": {int7}, "ok": true}}',
    # 5
    (
        "MAX_UPLOAD_BYTES = 1073741824\nRETRY_DELAYS = (100, 250, 500, 1000)\n"
        "SEED = 20231115\nMASK = 0xFFFFFFFF\nEPOCH_OFFSET = 2208988800"
    ),
    # 6
    "worker-{two} pid={int5} rss={int9} fds={int3} uptime={int7}s host={private} mac={mac}",
    # 7
    (
        "TimeoutError: no answer from {private}:{int4} after 30000 ms (request {uuid}, "
        "attempt {small})"
    ),
    # 8
    (
        "       user_id      last_login   bytes_sent\n0   {int7}   {epoch}   {int9}\n"
        "1   {int7}   {epoch}   {int9}\n2   {int7}   {epoch}   {int9}"
    ),
    # 9
    "Fehler {int4}: Datensatz {int9} gesperrt seit {date} {time}, Prozess {int5}, Sitzung {int6}",
    # 10
    "Erreur {int3} : lot {int8} rejeté, {int4} lignes lues, {int3} ignorées, durée {int5} ms",
)

MENTION_LOOK_ALIKES = (
    # 1
    (
        "Called {name} twice on {date}, no answer. Phone seems to be switched off. Ticket "
        "{int7} stays open, offer of {amount} valid until {date}."
    ),
    # 2
    (
        '{{"id": {int9}, "name": "{name}", "phone": null, "mobile": "", "account": '
        '"{int8}", "updated": {epoch}}}'
    ),
    # 3
    (
        "Please do not phone the warehouse before 07:00. Quote reference {int8} and customer "
        "number {int6} when you call."
    ),
    # 4
    'calls_total{{queue="sales"}} {int6}\ncalls_missed{{queue="sales"}} {int4} {epoch}',
    # 5
    "Mobile app 5.{two}.{small} (build {int7}) crashes on start, device SM-G{int3}F, Android 13",
    # 6
    (
        "Call summary: duration 00:{two}:{two}, wait {int3} s, score {small}/10, recording "
        "{uuid}. Customer will call back once invoice {int7} is corrected."
    ),
    # 7
    "Jabra headset, article {int8}, and 2 desk phones (serial {int9}) for room {int3}, {amount}",
    # 8
    (
        "Bitte keine Anrufe mehr, Kunde {int7} wünscht Kontakt nur per E-Mail ({email}). "
        "Telefonvertrag Nr. {int9} gekündigt zum {date}."
    ),
    # 9
    "El cliente no tiene teléfono registrado. Póliza {int9}, expediente {int4}/2023, {amount} €.",
    # 10
    (
        "{name} har ingen mobil registrerad. Kundnummer {int6}, ordernummer {int8}, bankgiro "
        "{int4}-{int4}."
    ),
)

PEOPLE_LOOK_ALIKES = (
    # 1
    (
        "Employee {int6}: {name}, hired {date}, grade {small}, salary {amount}, cost centre "
        "{int4}, badge {int8}"
    ),
    # 2
    (
        "{{'employee_no': {int5}, 'tax_year': 2023, 'gross': {amount}, 'ytd': {amount}, "
        "'code': '1257L'}}"
    ),
    # 3
    (
        "name,dob,score_2021,score_2022,score_2023\n{name},1984-02-{two},{two},{two},{two}\n"
        "{name},1991-10-{two},{two},{two},{two}"
    ),
    # 4
    "{name}\n{street}\n{city}\nCustomer since 2009, loyalty card {int4} {int4} {int4} {int4}",
    # 5
    "Join Zoom Meeting\nMeeting ID: {int3} {int4} {int4}\nPasscode: {int6}\n{date}, {time} CET",
    # 6
    "Your verification code is {int6}. It expires in 10 minutes. Never share it with anyone.",
    # 7
    "Leave balance 2023: 28 / used 21.5 / carried over 6.5; requests {int5}, {int5} and {int5}",
    # 8
    "Steuerjahr 2022, Steuernummer {two}/{int3}/{int5}, Bruttolohn {amount}, Personalnr. {int6}",
    # 9
    "Codice cliente {int7}, CAP {int5}, scadenza {date}, saldo {amount}, pratica {int4}/2024",
    # 10
    "Contribuinte {int9}, apólice {int8}, admissão em {date}, vencimento base {amount} €",
)

TRADE_LOOK_ALIKES = (
    # 1
    (
        "Container MSKU {int7}, seal {int6}, VIN {vin}, truck {plate}, {int5} kg, "
        "gate-in {date} {time}"
    ),
    # 2
    "Depot at {coordinate}, geofence radius 250 m, last fix {epoch}, odometer {int6} km",
    # 3
    (
        "ticker   open    high    low     close   volume\nABC   101.25  103.10  100.80  102.55  "
        "{int8}\nXYZ    48.02   48.90   47.75   48.11  {int9}"
    ),
    # 4
    "Q1 2024: 1,204,350 units; Q2 2024: 1,318,900 units; forecast 2025: 5,400,000 (+8.2 %)",
    # 5
    (
        "SELECT * FROM shipments WHERE id IN ({int8}, {int8}, {int9}) AND created > {epoch} "
        "LIMIT 100;"
    ),
    # 6
    (
        "HS code {int4}.{two}.{two}, origin DE, gross {int4}.{int3} kg, "
        "customs ref 24DE{int9}{letter}"
    ),
    # 7
    "Warehouse {small}: aisle {two}-{two}-{int3}, bin {int6}, counted {int4}, expected {int4}",
    # 8
    "Sendungsnummer {int6} {int6} {small}, Gewicht 12,350 kg, Maße 600 x 400 x 300 mm, PLZ {int5}",
    # 9
    "Albarán {int7}, bultos {two}, peso {int4} kg, matrícula {plate}, entrega {date} {time}",
    # 10
    "Numer przesyłki {int9}{int9}{int6}, waga 2,35 kg, paczkomat WAW{int3}, pobranie {amount} zł",
)

MARKED_LOOK_ALIKES = (
    # 1
    '<tr id="row-{int6}"><td>{date}</td><td>{int8}</td><td align="right">{amount}</td></tr>',
    # 2
    "image:\n  tag: 2024.{two}.{int4}\n  digest: sha256:{hex}\nreplicas: {small}\nport: 8443",
    # 3
    (
        '<svg width="1280" height="720" viewBox="0 0 1280 720">'
        '<path d="M10 315 L110 215 L140 265"/></svg>'
    ),
    # 4
    (
        '[{{"id": {int7}, "parent": {int7}, "size": {int9}}}, {{"id": {int7}, "parent": null, '
        '"size": {int8}}}]'
    ),
    # 5
    "| Run | Loss | Acc | Seed |\n|---|---|---|---|\n| 1 | 0.{int6} | 0.{int4} | {int5} |",
    # 6
    (
        "INSERT INTO stock (sku, qty, ts) VALUES ('{ean}', {int3}, {epoch}), "
        "('{ean}', {two}, {epoch});"
    ),
    # 7
    (
        "BEGIN:VEVENT\nDTSTAMP:20240115T083000Z\nDTSTART:20240118T130000Z\n"
        "SEQUENCE:{small}\nEND:VEVENT"
    ),
    # 8
    "<p>{company} GmbH, HRB {int6}, USt-IdNr. DE{int9}, BIC DEUTDEFF{int3}, Stand 01.2024</p>",
    # 9
    "SIREN {int3} {int3} {int3}, capital de 1 250 000 €, code APE 6201Z, RCS Paris B {int9}",
    # 10
    "KvK {int8}, btw NL{int9}B01, postbus {int4}, artikelcode {int3}.{int3}.{two}, {amount} euro",
)

LOOK_ALIKES = (
    SHOP_LOOK_ALIKES
    + MACHINE_LOOK_ALIKES
    + MENTION_LOOK_ALIKES
    + PEOPLE_LOOK_ALIKES
    + TRADE_LOOK_ALIKES
    + MARKED_LOOK_ALIKES
)
