"""Everyday words for the same thing, so that "get rid of a ticket" finds `delete_issue`.

General English of people who use tools: nothing in it is made for one server. A word may stand in
several groups. Words are looked up by their stems, so one form of each is enough.
"""

# A group is one line; every word of it stands for every other.
GROUPS = """
list show enumerate browse overview all every
show get view display see look inspect details read print retrieve
get fetch retrieve obtain read load pull receive
find search look locate discover query lookup seek hunt
query select ask question sql
check verify validate test lint inspect examine ensure valid correct
check status state health
create make add new build generate establish
create start begin launch
create set define configure register
add append attach insert put include
insert write store record put save
write draft compose author
remember recall memory
walk walking bike cycling drive driving
excel spreadsheet xlsx workbook
refund reimburse
save store keep persist export
update edit modify change alter adjust revise set patch rewrite
update replace overwrite swap substitute
rename retitle name
delete remove drop erase discard purge destroy clear clean trash trashed
delete rid throw wipe away
remove detach unassign unlink revoke
cancel abort terminate stop halt kill
stop pause suspend sleep freeze hibernate disable
start run execute launch trigger invoke perform
start resume continue wake enable
restart reboot retry rerun redo again
rollback revert undo restore reset back
restore recover undelete
copy duplicate clone replicate fork
move relocate transfer migrate reassign drag
send deliver dispatch post share
post publish announce tell write
reply respond answer
message msg dm chat note text post
sms text phone
email mail gmail inbox message
notify alert notification warn tell ping
alert alarm warning incident monitor
monitor watch observe track follow
follow subscribe watch
comment note remark reply feedback
issue ticket bug task story
error exception crash failure bug problem fault broken
fail failure error broken
problem issue trouble
diagnose troubleshoot debug investigate analyze root cause
analyze analysis analytics examine insight
summary summarize overview digest brief
report summary dashboard
statistics stats metrics numbers figures usage
metrics cpu memory usage performance measure
memory ram heap
count many number total amount
size big large disk space storage bytes
list catalog inventory
compare diff difference changes versus
diff patch changes
history log changelog revisions past versions
log logs output trace stdout tail
trace span request tracing distributed
commit revision changeset
stage staged index
branch ref
switch checkout
merge combine join integrate
pr pull-request merge-request mr
pull-request merge-request
repo repository project codebase
project workspace
workspace folder team space
folder directory dir path
file document attachment
document doc page note article
docs documentation manual guide reference help
page webpage website site url web
link url address href
web internet online website
site website web
scrape crawl extract fetch
extract parse pull read content
browser tab page window
navigate open visit go
click press tap push
type fill enter input write
screenshot snapshot picture capture image
picture image photo
form field input
dropdown select option
upload attach send import
download export save fetch
import load ingest upload
export dump download
database db
table sheet relation
spreadsheet sheet excel workbook xlsx xls
row record entry item line
records entries data rows
column field attribute property
field attribute property
cell range
schema structure definition columns fields layout describe
schema ddl migration
describe explain details info information
info information details metadata
index indices
document record
collection set
user person member people account colleague teammate
customer client buyer
contact person lead
company organization organisation org business
team group squad
member participant
role permission access right
permission access allow grant authorize share
allow whitelist allowlist permit
deny block forbid ban
login signin auth authenticate session
logout signout
password credential secret key token
token key credential
key apikey secret
invite add member
assign owner assignee responsible
label tag category
category type kind
priority urgency importance urgent
status state stage progress
state transition workflow status
deadline due date
date day calendar
calendar event meeting appointment schedule
schedule cron timer recurring plan
schedule book
time clock hour now
hours time worklog
timezone zone
today now current
current latest recent active
recent latest new newest last
old stale outdated obsolete
milestone goal
sprint iteration cycle
roadmap plan
release version deploy ship
version revision release
deploy deployment ship release publish rollout live
pipeline build ci workflow job
build compile
job task run
workflow action automation
test spec check
flaky unstable intermittent
coverage tested
server host machine instance node
vm virtual-machine instance machine
cluster k8s kubernetes
kubernetes k8s kubectl
container pod docker
pod container
scale replicas resize autoscale
cloud aws azure gcp
aws amazon
azure microsoft
gcp google
function lambda serverless
lambda function serverless
bucket s3 storage blob
blob storage file
queue message topic
domain dns hostname
network vpc subnet
ip address
certificate tls ssl
outage downtime incident unavailable
health healthy alive
cost price pricing bill spend expense money
bill invoice
price cost rate fee
payment charge pay
subscription plan membership
product item goods
order purchase
discount coupon promo
recommend suggest advice advise guidance
suggest suggestion recommendation propose
best recommended
map location place geo
place location venue poi restaurant shop
location address place coordinates
coordinates latitude longitude latlng
geocode address coordinates
directions route navigate drive way
distance far travel time
graph chart plot visualization
graph knowledge relation
entity node object
node entity
relation edge link connection
knowledge memory facts
remember memory store
dashboard board panel
panel widget chart
board kanban
filter rule
rule policy
policy rule permission
template boilerplate preset
example sample snippet
example demo
library package dependency module sdk
package module
api endpoint rest
endpoint route url
request call http
environment env
variable var env
environment stage
config configuration settings preferences options setup
settings configuration preferences
setup configure install
install setup add
limit quota
quota limit allowance
backup snapshot
snapshot backup
security vulnerability secure
vulnerability cve security advisory
secret leak credential
scan check detect
review approve
approve accept confirm
reject decline refuse deny
close finish complete resolve done
resolve fix close
open unresolved active pending
pending open waiting
archive hide
lock protect freeze
unlock release
sort order rank
sort arrange organize
read unread
star favorite bookmark
thread conversation discussion
conversation chat thread
channel room
reaction emoji
video movie clip
video youtube
audio sound voice
image picture figure
slides presentation powerpoint deck
presentation slides
draw diagram
text words content string
content text body
word text
translate language
news headlines
research investigate study
question query ask
think reason reasoning
plan think
profile account user
script code snippet
code source program
source code origin
convert transform
format style
encrypt encryption
namespace space
job run execution
wait poll until
step stage
parent child nested
child sub subtask
depends dependency block
related linked
duplicate same copy
epic initiative
objective goal okr
feature capability functionality
event webhook hook
hook webhook callback
stream streaming
topic subject
cache cached redis
performance slow speed fast latency
slow latency performance
profile performance trace
fix repair solve resolve remediate
experiment test
flag feature toggle
partition shard
replica copy
region zone location
subscription tenant
pricing cost
estimate forecast predict
forecast predict future weather
weather forecast
goal target
calculate compute sum formula
formula expression function
chart graph plot
"""


def groups() -> list[list[str]]:
    """Return the groups; a hyphen stands for the space in a term of several words."""
    return [line.split() for line in GROUPS.splitlines() if line]
